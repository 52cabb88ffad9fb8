//go:build !skywalking && !bare && !elastic

package tracing

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"github.com/go-logr/logr"
	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"gorm.io/gorm"
	"gorm.io/plugin/opentelemetry/tracing"
)

func init() { tracers["otlp"] = otlp }

// otlp is the OpenTelemetry SDK with the instrumentations of gin, net/http, go-redis and gorm. TRACER_EXPORT says where spans go: `http`
// or `grpc` (OTLP), `discard` (made, queued, batched, thrown away), `attached` (the instrumentations with a tracer that makes none).
func otlp(service Service) (*Tracer, error) {
	how := setting("TRACER_EXPORT", "http")
	if how == "attached" {
		return instrumented(service, noop.NewTracerProvider()), nil
	}
	exporter, err := exporter(how)
	if err != nil {
		return nil, err
	}
	return otlpTo(exporter, service), nil
}

func exporter(how string) (sdk.SpanExporter, error) {
	switch how {
	case "http":
		return otlptracehttp.New(context.Background())
	case "grpc":
		return otlptracegrpc.New(context.Background())
	case "discard":
		return discard{}, nil
	}
	return nil, fmt.Errorf("TRACER_EXPORT is `%s`; it must be http, grpc, discard or attached", how)
}

func otlpTo(exporter sdk.SpanExporter, service Service) *Tracer {
	watch := &otlpLosses{SpanExporter: exporter}
	otel.SetLogger(logr.New(watch))
	provider := sdk.NewTracerProvider(
		// Queue, batches and delays as the SDK has them, or as OTEL_BSP_… says.
		sdk.WithBatcher(watch),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", service.Name))))
	tracer := instrumented(service, provider)
	tracer.stop = provider.Shutdown
	tracer.lost = func() map[string]uint64 {
		return map[string]uint64{"queue": watch.queue.Load(), "export": watch.export.Load()}
	}
	return tracer
}

func instrumented(service Service, provider trace.TracerProvider) *Tracer {
	propagator := propagation.TraceContext{}
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagator)
	return &Tracer{
		Middleware: otelgin.Middleware(service.Name, otelgin.WithTracerProvider(provider), otelgin.WithPropagators(propagator),
			otelgin.WithGinFilter(func(c *gin.Context) bool { return isTraced(c.FullPath()) })),
		Transport: func(transport http.RoundTripper) http.RoundTripper {
			return otelhttp.NewTransport(transport, otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagator))
		},
		Redis: func(client *redis.Client) error {
			return redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(provider), redisotel.WithDialFilter(true))
		},
		Gorm: func(db *gorm.DB) error {
			return db.Use(tracing.NewPlugin(tracing.WithTracerProvider(provider), tracing.WithoutMetrics()))
		},
		TraceID: func(ctx context.Context) string {
			span := trace.SpanContextFromContext(ctx)
			if !span.IsValid() {
				return ""
			}
			return span.TraceID().String()
		},
	}
}

// otlpLosses counts what the SDK loses. Of its queue the SDK tells only in a line of its debug log, once per batch: "exporting spans",
// with `total_dropped`. Its own metrics would cost something per span.
type otlpLosses struct {
	sdk.SpanExporter
	queue, export atomic.Uint64
}

func (l *otlpLosses) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := l.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		l.export.Add(uint64(len(spans)))
	}
	return err
}

// Init is part of logr.LogSink.
func (l *otlpLosses) Init(logr.RuntimeInfo) {}

// Enabled is part of logr.LogSink: the line is of the most talkative level.
func (l *otlpLosses) Enabled(int) bool { return true }

// Info is part of logr.LogSink.
func (l *otlpLosses) Info(_ int, message string, pairs ...any) {
	if message != "exporting spans" {
		return
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if dropped, isNumber := pairs[i+1].(uint32); isNumber && pairs[i] == "total_dropped" {
			l.queue.Store(uint64(dropped))
		}
	}
}

// Error is part of logr.LogSink; errors come to ExportSpans as well.
func (l *otlpLosses) Error(error, string, ...any) {}

// WithValues is part of logr.LogSink.
func (l *otlpLosses) WithValues(...any) logr.LogSink { return l }

// WithName is part of logr.LogSink.
func (l *otlpLosses) WithName(string) logr.LogSink { return l }

// discard throws spans away.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                        { return nil }
