//go:build !skywalking && !bare && !otel

package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/redis/go-redis/v9"
	"go.elastic.co/apm/module/apmgin/v2"
	apmmysql "go.elastic.co/apm/module/apmgormv2/v2/driver/mysql"
	"go.elastic.co/apm/module/apmhttp/v2"
	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"
)

func init() { tracers["apm"] = elastic }

// elastic is Elastic's APM agent with its modules for gin, net/http and gorm, and a hook of our own for go-redis 9, for which it has
// none. Everything else is said by ELASTIC_APM_…; TRACER_EXPORT=discard encodes and compresses everything and throws it away.
func elastic(service Service) (*Tracer, error) {
	options := apm.TracerOptions{ServiceName: service.Name}
	switch how := setting("TRACER_EXPORT", "http"); how {
	case "http":
		sender, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{})
		if err != nil {
			return nil, err
		}
		options.Transport = sender
	case "discard":
		options.Transport = swallow{}
	default:
		return nil, fmt.Errorf("TRACER_EXPORT is `%s`; it must be http or discard", how)
	}
	tracer, err := apm.NewTracerOptions(options)
	if err != nil {
		return nil, err
	}
	// The modules use it where nothing else is said.
	apm.SetDefaultTracer(tracer)
	return &Tracer{
		Middleware: apmgin.Middleware(nil, apmgin.WithTracer(tracer), apmgin.WithRequestIgnorer(func(request *http.Request) bool {
			return !isTraced(request.URL.Path)
		})),
		Transport: func(transport http.RoundTripper) http.RoundTripper { return apmhttp.WrapRoundTripper(transport) },
		Redis: func(client *redis.Client) error {
			client.AddHook(apmRedis{})
			return nil
		},
		Dialector: apmmysql.Open,
		TraceID: func(ctx context.Context) string {
			if transaction := apm.TransactionFromContext(ctx); transaction != nil {
				return transaction.TraceContext().Trace.String()
			}
			return ""
		},
		stop: func(ctx context.Context) error {
			tracer.Flush(ctx.Done())
			tracer.Close()
			return nil
		},
		lost: func() map[string]uint64 {
			stats := tracer.Stats()
			return map[string]uint64{"queue": stats.TransactionsDropped + stats.SpansDropped}
		},
	}, nil
}

// apmRedis makes a span of every command.
type apmRedis struct{}

func (apmRedis) DialHook(next redis.DialHook) redis.DialHook { return next }

func (apmRedis) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		span, ctx := apm.StartSpanOptions(ctx, command.FullName(), "db.redis", apm.SpanOptions{ExitSpan: true})
		defer span.End()
		err := next(ctx, command)
		if err != nil && !errors.Is(err, redis.Nil) {
			span.Outcome = "failure"
		}
		return err
	}
}

func (apmRedis) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// swallow is a transport that reads everything and sends nothing.
type swallow struct{}

func (swallow) SendStream(_ context.Context, stream io.Reader) error {
	_, err := io.Copy(io.Discard, stream)
	return err
}
