//go:build !skywalking && !bare && !elastic

package tracing

import (
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Made is a span that was made in a test.
type Made struct{ Trace, Name string }

// InMemory is OpenTelemetry's tracer for tests; the function gives what was made so far.
func InMemory(service Service) (*Tracer, func() []Made) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	return instrumented(service, provider), func() []Made {
		var made []Made
		for _, span := range exporter.GetSpans() {
			made = append(made, Made{span.SpanContext.TraceID().String(), span.Name})
		}
		return made
	}
}
