// A server by Node's own http, http2 and TLS that counts its requests; see ../README.md.
'use strict'

const fs = require('node:fs')
const http = require('node:http')
const http2 = require('node:http2')
const path = require('node:path')

const [http1Port, http2Port, tlsPort, folder] = process.argv.slice(2)
let count = 0

function answer(request, response) {
  const text = request.url === '/count' ? String(count) : 'hello'
  if (request.url !== '/count') count += 1
  response.writeHead(200, { 'content-length': text.length })
  response.end(text)
}

const read = (name) => fs.readFileSync(path.join(folder, name))
http.createServer(answer).listen(Number(http1Port), '127.0.0.1')
http2.createServer(answer).listen(Number(http2Port), '127.0.0.1')
http2
  .createSecureServer({ allowHTTP1: true, cert: read('cert.pem'), key: read('key.pem') }, answer)
  .listen(Number(tlsPort), '127.0.0.1')
