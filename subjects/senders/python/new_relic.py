"""Sends spans to `unladen sink` through New Relic's agent for Python, and prints every span that it made as a line of JSON.
Arguments: newrelic, an address, and how many traces. Every trace begins with a header of its caller. The certificate of the
sink's authority is the file in NEW_RELIC_CA_BUNDLE_PATH."""

import json
import os
import sys
import uuid

SERVICE = "pets"


def configure(address):
    host, port = address.rsplit(":", 1)
    sampler = "NEW_RELIC_DISTRIBUTED_TRACING_SAMPLER_REMOTE_PARENT_SAMPLED"
    detect = {f"NEW_RELIC_UTILIZATION_DETECT_{name}": "false" for name in "AWS AZURE GCP PCF DOCKER KUBERNETES".split()}
    os.environ |= detect | {
        "NEW_RELIC_HOST": host,
        "NEW_RELIC_PORT": port,
        "NEW_RELIC_LICENSE_KEY": "unladenunladenunladenunladenunladenunlad",
        "NEW_RELIC_APP_NAME": SERVICE,
        sampler: "always_on",
        "NEW_RELIC_SPAN_EVENTS_MAX_SAMPLES_STORED": "10000",
    }


def watch(made):
    """Notes the spans that the agent makes, before its reservoir and its wire."""
    from newrelic.core.transaction_node import TransactionNode

    span_events = TransactionNode.span_events

    def watched(self, *arguments, **named):
        for event in span_events(self, *arguments, **named):
            made.append(event)
            yield event

    TransactionNode.span_events = watched


def trace(newrelic, application, number, trace_id, caller):
    """A request, a function within it, and a query within that; the attributes of each."""
    attributes = {"number": number, "text": f"größe 🐾 {number}", "fraction": 0.5}

    def describe():
        for key, value in attributes.items():
            newrelic.add_custom_span_attribute(key, value)

    with newrelic.WebTransaction(application, "GET /pets/{id}", group="Uri"):
        newrelic.accept_distributed_trace_headers({"traceparent": f"00-{trace_id}-{caller}-01"}, transport_type="HTTP")
        describe()
        with newrelic.FunctionTrace("wählt 名前 🐾"):
            describe()
            try:
                with newrelic.DatastoreTrace("SQL", "pets", "select"):
                    describe()
                    if number % 5 == 0:
                        raise ValueError("no such pet")
            except ValueError:
                pass
    return attributes


def row(event, trace_id, parent_id, kind, status, attributes):
    intrinsics = event[0]
    return {
        "trace_id": trace_id,
        "span_id": intrinsics["guid"],
        "parent_id": parent_id,
        "service": SERVICE,
        "operation": intrinsics["name"],
        "kind": kind,
        "status": status,
        "start_ns": intrinsics["timestamp"] * 1_000_000,
        "duration_ns": round(intrinsics["duration"] * 1e9),
        "attributes": attributes,
    }


def send(address, traces):
    configure(address)
    import newrelic.agent as newrelic

    made = []
    watch(made)
    newrelic.initialize()
    application = newrelic.register_application(timeout=60)
    assert application.active, "the agent has not connected"
    for number in range(traces):
        trace_id, caller = uuid.uuid4().hex, uuid.uuid4().hex[16:]
        made.clear()
        attributes = trace(newrelic, application, number, trace_id, caller)
        request, function, query = made
        ids = [event[0]["guid"] for event in made]
        failed = "error" if number % 5 == 0 else "unset"
        rows = [
            row(request, trace_id, caller, "server", "unset", attributes),
            row(function, trace_id, ids[0], "internal", "unset", attributes),
            row(query, trace_id, ids[1], "client", failed, attributes),
        ]
        print("\n".join(json.dumps(row) for row in rows))
    newrelic.shutdown_agent(timeout=60)


if __name__ == "__main__":
    import complaint

    complaint.listen()
    send(sys.argv[2], int(sys.argv[3]))
    sys.exit(complaint.Complaint.heard)
