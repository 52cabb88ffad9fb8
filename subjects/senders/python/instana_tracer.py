"""Sends spans to `unladen sink` through Instana's tracer for Python, and prints every span that it made as a line of JSON.
Arguments: instana, an address, and how many traces. Every trace begins with a header of its caller."""

import json
import os
import sys
import time
import uuid

import complaint

SERVICE = "pets-größe-🐾"
PATIENCE = 60  # s


def connect(address):
    """The tracer and its agent, once they can send."""
    host, port = address.rsplit(":", 1)
    os.environ |= {"INSTANA_AGENT_HOST": host, "INSTANA_AGENT_PORT": port, "INSTANA_SERVICE_NAME": SERVICE}
    import instana  # It starts the agent.
    from instana.singletons import get_agent, get_tracer

    until = time.monotonic() + PATIENCE
    while not get_agent().can_send():
        assert time.monotonic() < until, "the tracer has not found its agent"
        time.sleep(0.1)
    return get_tracer(), get_agent()


def row(span, name, kind, status, attributes):
    return {
        # All that most of its spans know of the trace's id.
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_id": f"{span.parent_id:016x}",
        "service": SERVICE,
        "instance": str(os.getpid()),
        "operation": name,
        "kind": kind.name.lower(),
        "status": status,
        # It sends milliseconds.
        "start_ns": round(span.start_time / 1e6) * 1_000_000,
        "duration_ns": round(span.duration / 1e6) * 1_000_000,
        "attributes": attributes,
    }


def send(address, traces):
    tracer, agent = connect(address)
    from instana.propagators.format import Format
    from opentelemetry.trace import SpanKind, set_span_in_context

    first = time.time_ns() - 1_000_000_000
    for number in range(traces):
        trace_id, caller = uuid.uuid4().hex, uuid.uuid4().hex[16:]
        context = tracer.extract(Format.HTTP_HEADERS, {"traceparent": f"00-{trace_id}-{caller}-01"})
        attributes = {"number": number, "text": f"größe 🐾 {number}", "fraction": 0.5, "list": ["a", "ä"]}
        start = first + number * 1_000_000
        for name, kind, after, took in [
            ("GET /pets/{id}", SpanKind.SERVER, 1, 9_900_000 + number),
            ("wählt 名前 🐾", SpanKind.INTERNAL, 1_100_002, 7_700_000),
            ("SELECT pets", SpanKind.CLIENT, 2_200_003, 5_500_000),
        ]:
            span = tracer.start_span(name, context, kind=kind, start_time=start + after, attributes=attributes)
            context = set_span_in_context(span, context)
            failed = kind is SpanKind.CLIENT and number % 5 == 0
            if failed:
                span.mark_as_errored()
            span.end(end_time=start + after + took)
            print(json.dumps(row(span, name, kind, "error" if failed else "unset", attributes)))
    agent.collector.shutdown(report_final=True)


if __name__ == "__main__":
    complaint.listen()
    send(sys.argv[2], int(sys.argv[3]))
    sys.exit(complaint.Complaint.heard)
