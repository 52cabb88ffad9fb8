// A server by Node's http: some arithmetic and a little JSON for every request.
//   node server.js PORT [EXTRA]      EXTRA: rounds of arithmetic more than its own
'use strict'

const http = require('node:http')

const OWN = 20000
const [port, extra = 0] = process.argv.slice(2).map(Number)

function work(rounds) {
  let sum = 0
  for (let round = 0; round < rounds; round++) sum = (sum * 31 + round) | 0
  return sum
}

// Keeps the extra work from being left out.
let kept = 0

http
  .createServer((request, response) => {
    const sum = work(OWN)
    kept ^= work(extra)
    const items = Array.from({ length: 60 }, (_, id) => ({ id, name: `item ${sum + id}` }))
    const body = JSON.stringify(items)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
  .listen(port, '127.0.0.1')
