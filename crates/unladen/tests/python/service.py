"""A service in Python's standard library alone, with costs that are known: threads, descriptors and memory held, sleeps per request."""

import argparse
import http.server
import tempfile
import threading
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int, required=True)
arguments.add_argument("--threads", type=int, default=0, help="threads that do nothing")
arguments.add_argument("--files", type=int, default=0, help="files held open")
arguments.add_argument("--hold-mib", type=int, default=0, help="memory held")
arguments.add_argument("--naps", type=int, default=0, help="naps per request, each of which gives up the CPU")
options = arguments.parse_args()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the second would wait 40 ms for the acknowledgement of the first.
    wbufsize = -1

    def do_GET(self):
        for _ in range(options.naps):
            time.sleep(0.0002)
        self.send_response(200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


held = bytearray(b"\xa5") * (options.hold_mib << 20)
files = [tempfile.TemporaryFile() for _ in range(options.files)]
for _ in range(options.threads):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Answer).serve_forever()
