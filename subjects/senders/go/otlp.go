package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

func otlpGRPC(address string, traces int, sent *Sent) error {
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpoint(address),
		otlptracegrpc.WithInsecure(), otlptracegrpc.WithCompressor("gzip"))
	return errors.Join(err, otlp(exporter, traces, sent))
}

func otlpHTTP(address string, traces int, sent *Sent) error {
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpoint(address),
		otlptracehttp.WithInsecure())
	return errors.Join(err, otlp(exporter, traces, sent))
}

var otlpKinds = map[string]api.SpanKind{
	"server":   api.SpanKindServer,
	"internal": api.SpanKindInternal,
	"client":   api.SpanKindClient,
}

func otlp(exporter sdk.SpanExporter, traces int, sent *Sent) error {
	var failed error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { failed = errors.Join(failed, err) }))
	provider := sdk.NewTracerProvider(
		// As large as all that is sent: what is tested here is the receiver, not a queue that is too small.
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(3*traces)),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service), attribute.String("service.instance.id", "one"))))
	tracer := provider.Tracer("unladen")
	first := start()
	for number := range traces {
		contexts := []context.Context{}
		for index, span := range trace(first, number) {
			// Finer than a microsecond, because OTLP has it.
			span.Start = span.Start.Add(time.Duration(index+1) * time.Nanosecond)
			parent := context.Background()
			if span.Parent >= 0 {
				parent = contexts[span.Parent]
			}
			ctx, live := tracer.Start(parent, span.Operation, api.WithSpanKind(otlpKinds[span.Kind]),
				api.WithTimestamp(span.Start),
				api.WithAttributes(attribute.Int("number", span.Number), attribute.String("text", span.Text)))
			contexts = append(contexts, ctx)
			status := "unset"
			if span.IsError {
				live.SetStatus(codes.Error, "no such pet")
				status = "error"
			} else if span.Kind == "server" {
				live.SetStatus(codes.Ok, "")
				status = "ok"
			}
			live.End(api.WithTimestamp(span.End()))
			parentID := ""
			if span.Parent >= 0 {
				parentID = api.SpanContextFromContext(parent).SpanID().String()
			}
			sent.add(Row{
				TraceID: live.SpanContext().TraceID().String(), SpanID: live.SpanContext().SpanID().String(),
				ParentID: text(parentID), Service: service, Instance: "one", Operation: span.Operation,
				Kind: span.Kind, Status: status, StartNs: span.Start.UnixNano(), DurationNs: int64(span.Duration),
				Attributes: map[string]any{"number": span.Number, "text": span.Text},
			})
		}
	}
	return errors.Join(provider.Shutdown(context.Background()), failed)
}
