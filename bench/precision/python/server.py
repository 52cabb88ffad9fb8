"""A server by Python's standard library, with a thread for every connection: some arithmetic and a little JSON for every request.

    server.py PORT [EXTRA]      EXTRA: rounds of arithmetic more than its own
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OWN = 2_000
PORT, EXTRA = map(int, (sys.argv[1:] + ["0"])[:2])


def work(rounds):
    total = 0
    for i in range(rounds):
        total = (total * 31 + i) & 0xFFFFFFFF
    return total


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one segment; else the second waits for the acknowledgement of the first.
    wbufsize = -1

    def do_GET(self):
        total = work(OWN)
        work(EXTRA)
        body = json.dumps([{"id": i, "name": f"item {total + i}"} for i in range(40)]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", PORT), Handler).serve_forever()
