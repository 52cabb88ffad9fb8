"""Sends spans to `unladen sink` through AWS X-Ray's SDK for Python, and prints every span that it sent as a line of JSON.
Arguments: whole or streamed (subsegments one by one), an address, and how many traces. Every trace begins with the ids of its caller."""

import json
import os
import sys
import time
import uuid

import complaint

SERVICE = "pets-größe-🐾"
# A subsegment that is sent on its own does not say whose it is.
NOBODY = "unknown_service"


def spans(first, number):
    """What the trace of this number is made of: name, namespace, kind, start, duration (both µs) and whether it failed."""
    start = first + number * 1_000
    return [
        (SERVICE, None, "server", start + 1, 900 + number, False),
        ("wählt 名前 🐾", "local", "internal", start + 102, 700, False),
        ("SELECT pets", "remote", "client", start + 203, 500, number % 5 == 0),
    ]


def ask(address):
    """Asks how to sample, as the SDK does every five minutes: it must understand the answers."""
    from aws_xray_sdk.core.sampling.connector import ServiceConnector

    connector = ServiceConnector()
    connector.setup_xray_client(*address.rsplit(":", 1), None)
    [rule] = connector.fetch_sampling_rules()
    assert (rule.name, rule.rate, rule.can_borrow) == ("Default", 0.05, True), vars(rule)
    targets, modified = connector.fetch_sampling_target([rule])
    assert (targets, modified) == ({}, 1), (targets, modified)


def send(way, traces):
    # Reads the environment as it is imported.
    from aws_xray_sdk.core import xray_recorder

    xray_recorder.configure(streaming_threshold=0 if way == "streamed" else 30)
    first = time.time_ns() // 1_000 - 1_000_000
    for number in range(traces):
        trace, caller = uuid.uuid4().hex, uuid.uuid4().hex[:16]
        parts = spans(first, number)
        live = []
        for name, namespace, _, start, _, failed in parts:
            if namespace is None:
                span = xray_recorder.begin_segment(name, f"1-{trace[:8]}-{trace[8:]}", caller, sampling=1)
            else:
                span = xray_recorder.begin_subsegment(name, namespace)
            span.start_time = start / 1e6
            span.put_annotation("number", number)
            span.put_annotation("fraction", 0.5)
            span.put_annotation("text", f"größe 🐾 {number}")
            if failed:
                span.add_error_flag()
            live.append(span)
        for _, namespace, _, start, duration, _ in reversed(parts):
            end = xray_recorder.end_segment if namespace is None else xray_recorder.end_subsegment
            end((start + duration) / 1e6)
        for span, parent, (name, namespace, kind, start, duration, failed) in zip(live, [None, *live], parts):
            row = {
                "trace_id": trace,
                "span_id": span.id,
                "parent_id": caller if parent is None else parent.id,
                "service": NOBODY if way == "streamed" and namespace else SERVICE,
                "operation": name,
                "kind": kind,
                "status": "error" if failed else "unset",
                "start_ns": start * 1_000,
                "duration_ns": duration * 1_000,
                "attributes": {"number": number, "fraction": 0.5, "text": f"größe 🐾 {number}"},
            }
            print(json.dumps(row))
        # Nobody holds a sender of datagrams back.
        time.sleep(0.001)


if __name__ == "__main__":
    complaint.listen()
    # No cloud is to be asked what machine this is.
    os.environ |= {"AWS_XRAY_DAEMON_ADDRESS": sys.argv[2], "AWS_EC2_METADATA_DISABLED": "true"}
    ask(sys.argv[2])
    send(sys.argv[1], int(sys.argv[3]))
    sys.exit(complaint.Complaint.heard)
