"""A service with a span of its own for each request, if an SDK is there: OpenTelemetry's interface alone makes none."""

import http.server
import os
import signal
import sys

from opentelemetry import propagate, trace

TRACER = trace.get_tracer("unladen")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the second would wait for the acknowledgement of the first.
    wbufsize = -1

    def do_GET(self):
        context = propagate.extract(self.headers)
        with TRACER.start_as_current_span("GET", context, trace.SpanKind.SERVER):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


# What the SDK still has it sends when the interpreter ends, which a signal alone does not make it do.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("network", os.readlink("/proc/self/ns/net"), flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
