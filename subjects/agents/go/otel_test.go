//go:build otel || zipkin

package main

import (
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

var spansOfARequest = []string{
	"GET /products/{number}",
	"sql.conn.query", "sql.conn.query", "sql.conn.query",
	"sql.conn.reset_session", "sql.conn.reset_session", "sql.conn.reset_session",
	"sql.rows", "sql.rows", "sql.rows",
}

func recorded(*testing.T) (*agent, func() []made) {
	exporter := tracetest.NewInMemoryExporter()
	return instrumented(sdk.NewTracerProvider(sdk.WithSyncer(exporter))), func() []made {
		var spans []made
		for _, span := range exporter.GetSpans() {
			// That of opening the connection, before the request.
			if span.Name != "sql.connector.connect" {
				spans = append(spans, made{span.SpanContext.TraceID().String(), span.Name})
			}
		}
		return spans
	}
}
