//go:build otel

package main

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends OTLP over gRPC to where OTEL_EXPORTER_OTLP_ENDPOINT says.
func exporter(ctx context.Context) (sdk.SpanExporter, error) { return otlptracegrpc.New(ctx) }
