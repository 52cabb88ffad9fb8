"""Sends spans to `unladen sink` through OpenTelemetry's SDK for Python, and prints every span that it sent as a line of
JSON. Arguments: otlp-grpc, otlp-http or azure, an address, and how many traces."""

import json
import os
import sys
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

import complaint

SERVICE = "pets-größe-🐾"


def spans(first, number, unit):
    """What the trace of this number is made of: operation, kind, parent, start, duration (both ns) and status."""
    start = first + number * 1_000_000
    failing = StatusCode.ERROR if number % 5 == 0 else StatusCode.UNSET
    return [
        ("GET /pets/{id}", SpanKind.SERVER, None, start + unit, unit * (900_000 + number), StatusCode.OK),
        ("wählt 名前 🐾", SpanKind.INTERNAL, 0, start + 2 * unit, unit * 700_000, StatusCode.UNSET),
        ("SELECT pets", SpanKind.CLIENT, 1, start + 3 * unit, unit * 500_000, failing),
    ]


def azure(address):
    # Else it tells its maker how it is used.
    os.environ["APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL"] = "true"
    from azure.monitor.opentelemetry.exporter import AzureMonitorTraceExporter

    key = "InstrumentationKey=00000000-0000-0000-0000-000000000001"
    return AzureMonitorTraceExporter(connection_string=f"{key};IngestionEndpoint=http://{address}/")


def as_azure(row):
    """What Application Insights has room for: texts, and whether a span succeeded."""
    texts = {key: str(tuple(value) if isinstance(value, list) else value) for key, value in row["attributes"].items()}
    return row | {"status": "error" if row["status"] == "error" else "ok", "attributes": texts}


def exporter(sender, address):
    if sender == "azure":
        return azure(address)
    if sender == "otlp-grpc":
        return GrpcExporter(endpoint=f"http://{address}", insecure=True)
    return HttpExporter(endpoint=f"http://{address}/v1/traces")


def send(sender, address, traces):
    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE, "service.instance.id": "one"}))
    # As large as all that is sent: what is tested here is the receiver, not a queue that is too small.
    provider.add_span_processor(BatchSpanProcessor(exporter(sender, address), max_queue_size=3 * traces))
    # Azure's exporter asks it what the service is.
    trace.set_tracer_provider(provider)
    tracer = provider.get_tracer("unladen")
    # Azure's exporter knows milliseconds of a duration.
    unit = 1_000_000 if sender == "azure" else 1
    first = time.time_ns() // unit * unit - 1_000_000_000
    for number in range(traces):
        live = []
        attributes = {"number": number, "text": f"größe 🐾 {number}", "fraction": 0.5, "list": ["a", "ä"]}
        for operation, kind, parent, start, duration, status in spans(first, number, unit):
            context = trace.set_span_in_context(live[parent]) if parent is not None else None
            span = tracer.start_span(operation, context, kind=kind, start_time=start, attributes=attributes)
            if status is not StatusCode.UNSET:
                span.set_status(Status(status))
            span.end(end_time=start + duration)
            live.append(span)
            row = {
                "trace_id": f"{span.context.trace_id:032x}",
                "span_id": f"{span.context.span_id:016x}",
                "parent_id": f"{live[parent].context.span_id:016x}" if parent is not None else "",
                "service": SERVICE,
                "instance": "one",
                "operation": operation,
                "kind": kind.name.lower(),
                "status": status.name.lower(),
                "start_ns": start,
                "duration_ns": duration,
                "attributes": attributes,
            }
            print(json.dumps(as_azure(row) if sender == "azure" else row))
    provider.shutdown()


if __name__ == "__main__":
    complaint.listen()
    send(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.exit(complaint.Complaint.heard)
