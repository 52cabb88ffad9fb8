"""Sends spans to `unladen sink` through Datadog's ddtrace, and prints every span that it sent as a line of JSON.
Arguments: v0.4 or v0.5, an address, and how many traces."""

import json
import os
import sys
import time

import complaint

SERVICE = "pets-größe-🐾"


def spans(first, number):
    """What the trace of this number is made of: name, resource, type, kind, parent, start, duration (both ns) and error."""
    start = first + number * 1_000_000
    return [
        ("web.request", "GET /pets/{id}", "web", "server", None, start + 1, 900_000 + number, 0),
        ("wählt", "wählt 名前 🐾", "", "internal", 0, start + 100_002, 700_000, 0),
        ("mysql.query", "SELECT pets", "sql", "client", 1, start + 200_003, 500_000, int(number % 5 == 0)),
    ]


def send(traces):
    # Reads the environment as it is imported.
    from ddtrace.trace import tracer

    first = time.time_ns() - 1_000_000_000
    for number in range(traces):
        live = []
        for name, resource, kind_of_work, kind, parent, start, duration, error in spans(first, number):
            span = tracer.start_span(
                name,
                service=SERVICE,
                resource=resource,
                span_type=kind_of_work or None,
                child_of=live[parent] if parent is not None else None,
            )
            span.set_tag("span.kind", kind)
            span.set_tag("text", f"größe 🐾 {number}")
            span.set_metric("number", number)
            span.set_metric("fraction", 0.5)
            span.error = error
            span.start_ns = start
            live.append(span)
        # A trace is sent once all of its spans have ended.
        for span, (name, resource, kind_of_work, kind, parent, start, duration, error) in zip(live, spans(first, number)):
            span.finish(finish_time=(start + duration) / 1e9)
            row = {
                "trace_id": f"{span.trace_id:032x}",
                "span_id": f"{span.span_id:016x}",
                "parent_id": f"{span.parent_id:016x}" if span.parent_id else "",
                "service": SERVICE,
                "operation": resource,
                "kind": kind,
                "status": "error" if error else "unset",
                "start_ns": start,
                # To the microsecond: an end is a number of seconds, which has no room for more.
                "duration_ns": span.duration_ns,
                "attributes": {
                    "operation.name": name,
                    "number": float(number),
                    "fraction": 0.5,
                    "text": f"größe 🐾 {number}",
                },
            }
            assert abs(span.duration_ns - duration) < 1_000, row
            print(json.dumps(row))
    tracer.shutdown()


if __name__ == "__main__":
    complaint.listen()
    os.environ |= {
        "DD_TRACE_AGENT_URL": f"http://{sys.argv[2]}",
        "DD_TRACE_API_VERSION": sys.argv[1],
        "DD_SERVICE": SERVICE,
        # What it reports of itself goes to the sink, and is all that it asks for there.
        "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    }
    send(int(sys.argv[3]))
    sys.exit(complaint.Complaint.heard)
