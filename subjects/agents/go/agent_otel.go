//go:build otel || zipkin

package main

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
)

// start starts OpenTelemetry's SDK with the instrumentations of net/http and database/sql. Sampler, batches and the address are those of
// the SDK, or what OTEL_… says; where spans go is a matter of the build: exporter_otel.go, exporter_zipkin.go.
func start() (*agent, error) {
	exporter, err := exporter(context.Background())
	if err != nil {
		return nil, err
	}
	return instrumented(sdk.NewTracerProvider(sdk.WithBatcher(exporter))), nil
}

func instrumented(provider *sdk.TracerProvider) *agent {
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	return &agent{
		open: func(driver, source string) (*sql.DB, error) {
			return otelsql.Open(driver, source, otelsql.WithAttributes(semconv.DBSystemNamePostgreSQL))
		},
		serve: func(mux *http.ServeMux) http.Handler { return otelhttp.NewHandler(mux, name) },
		stop:  provider.Shutdown,
	}
}
