"""Sends spans to `unladen sink` through Sentry's SDK for Python, and prints every span that it sent as a line of JSON.
Arguments: transaction or stream, an address, and how many traces. Every trace begins with a header of its caller."""

import json
import sys
import uuid
from datetime import datetime, timedelta, timezone

import sentry_sdk
import sentry_sdk.traces

import complaint

SERVICE = "pets"
EPOCH = datetime.fromtimestamp(0, timezone.utc)


def time(microseconds):
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds(time):
    return (time - EPOCH) // timedelta(microseconds=1)


def spans(first, number):
    """What the trace of this number is made of: operation, what it does, kind, parent, start, duration (both µs), failed."""
    start = first + number * 1_000
    return [
        ("GET /pets/{id}", "http.server", "server", None, start + 1, 900 + number, False),
        ("wählt 名前 🐾", "function", "internal", 0, start + 102, 700, False),
        ("SELECT pets", "db", "client", 1, start + 203, 500, number % 5 == 0),
    ]


def transaction(header, parts, attributes):
    """A trace as one transaction; its spans with their times in µs and the name of their status."""
    live = []
    for operation, op, _, parent, start, _, failed in parts:
        if parent is None:
            root = sentry_sdk.continue_trace({"sentry-trace": header}, op=op, name=operation)
            root.start_timestamp = time(start)
            span = sentry_sdk.start_transaction(root)
        else:
            span = live[parent].start_child(op=op, name=operation, start_timestamp=time(start))
        for key, value in attributes.items():
            span.set_data(key, value)
        span.set_status("internal_error" if failed else "ok")
        live.append(span)
    # The root last: it takes those along that have ended.
    for span, (_, _, _, _, start, duration, _) in reversed(list(zip(live, parts))):
        span.finish(end_timestamp=time(start + duration))
    return [(span, start, "error" if failed else "ok") for span, (_, _, _, _, start, _, failed) in zip(live, parts)]


def stream(header, parts, attributes):
    """The same span by span. When one began cannot be set: it is what the SDK says."""
    sentry_sdk.traces.continue_trace({"sentry-trace": header})
    live = []
    for operation, op, _, parent, _, _, failed in parts:
        span = sentry_sdk.traces.start_span(
            operation, {"sentry.op": op} | attributes, None if parent is None else live[parent], active=False
        )
        if failed:
            span.status = "error"
        live.append(span)
    sent = []
    for span, (_, _, _, _, _, duration, failed) in zip(live, parts):
        start = microseconds(span._start_timestamp)
        span.end(end_timestamp=time(start + duration))
        sent.append((span, start, "error" if failed else "ok"))
    return sent


def send(way, address, traces):
    sentry_sdk.init(
        f"http://{SERVICE}@{address}/1",
        # With a header its flag decides; without a rate there is no tracing at all.
        traces_sample_rate=0.5,
        trace_lifecycle="static" if way == "transaction" else "stream",
        server_name="one",
        auto_enabling_integrations=False,
        # As large as all that is sent: what is tested here is the receiver, not a queue that is too small.
        transport_queue_size=2 * traces,
    )
    first = microseconds(datetime.now(timezone.utc)) - 1_000_000
    for number in range(traces):
        attributes = {"number": number, "text": f"größe 🐾 {number}", "fraction": 0.5, "list": ["a", "ä"]}
        parts = spans(first, number)
        trace, caller = uuid.uuid4().hex, uuid.uuid4().hex[16:]
        send_one = transaction if way == "transaction" else stream
        sent = send_one(f"{trace}-{caller}-1", parts, attributes)
        for (span, start, status), (operation, op, kind, parent, _, duration, _) in zip(sent, parts):
            row = {
                "trace_id": trace,
                "span_id": span.span_id,
                "parent_id": caller if parent is None else sent[parent][0].span_id,
                "service": SERVICE,
                # Streamed spans do not name it.
                "instance": "one" if way == "transaction" else "",
                "operation": operation,
                "kind": kind,
                "status": status,
                "start_ns": start * 1_000,
                "duration_ns": duration * 1_000,
                "attributes": attributes | {"sentry.op": op},
            }
            print(json.dumps(row))
    sentry_sdk.flush(timeout=60)


if __name__ == "__main__":
    complaint.listen()
    send(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.exit(complaint.Complaint.heard)
