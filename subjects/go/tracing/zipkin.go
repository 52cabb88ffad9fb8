//go:build !skywalking && !bare && !otel && !elastic

package tracing

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	openzipkin "github.com/openzipkin/zipkin-go"
	zipkinhttp "github.com/openzipkin/zipkin-go/middleware/http"
	"github.com/openzipkin/zipkin-go/model"
	"github.com/openzipkin/zipkin-go/reporter"
	sender "github.com/openzipkin/zipkin-go/reporter/http"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"
)

func init() { tracers["zipkin"] = zipkin }

// zipkin is Zipkin's own library with its middleware for net/http, and hooks of our own for go-redis and gorm, for which it has none.
// ZIPKIN_URL says where spans go; ZIPKIN_MAX_BACKLOG and ZIPKIN_BATCH_SIZE replace the library's 1,000 and 100.
func zipkin(service Service) (*Tracer, error) {
	backlog, err := number("ZIPKIN_MAX_BACKLOG", 1_000)
	if err != nil {
		return nil, err
	}
	batch, err := number("ZIPKIN_BATCH_SIZE", 100)
	if err != nil {
		return nil, err
	}
	watch := &zipkinLosses{client: &http.Client{}}
	report := sender.NewReporter(setting("ZIPKIN_URL", "http://127.0.0.1:9411/api/v2/spans"),
		sender.MaxBacklog(backlog), sender.BatchSize(batch), sender.Serializer(watch), sender.Client(watch),
		sender.Logger(log.New(watch, "", 0)))
	return zipkinTo(report, service, watch)
}

func zipkinTo(report reporter.Reporter, service Service, watch *zipkinLosses) (*Tracer, error) {
	endpoint, err := openzipkin.NewEndpoint(service.Name, service.Address)
	if err != nil {
		return nil, err
	}
	tracer, err := openzipkin.NewTracer(report, openzipkin.WithLocalEndpoint(endpoint), openzipkin.WithTraceID128Bit(true),
		openzipkin.WithSharedSpans(false))
	if err != nil {
		return nil, err
	}
	middleware := zipkinhttp.NewServerMiddleware(tracer)
	return &Tracer{
		Handler: func(handler http.Handler) http.Handler {
			traced := middleware(handler)
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if isTraced(request.URL.Path) {
					traced.ServeHTTP(w, request)
				} else {
					handler.ServeHTTP(w, request)
				}
			})
		},
		Transport: func(transport http.RoundTripper) http.RoundTripper {
			traced, err := zipkinhttp.NewTransport(tracer, zipkinhttp.RoundTripper(transport))
			if err != nil {
				panic(err) // Only options that are not given here can fail.
			}
			return traced
		},
		Redis: func(client *redis.Client) error {
			client.AddHook(zipkinRedis{tracer})
			return nil
		},
		Gorm: func(db *gorm.DB) error { return zipkinGorm(db, tracer) },
		TraceID: func(ctx context.Context) string {
			if span := openzipkin.SpanFromContext(ctx); span != nil {
				return span.Context().TraceID.String()
			}
			return ""
		},
		stop: func(context.Context) error { return report.Close() },
		lost: func() map[string]uint64 {
			return map[string]uint64{"queue": watch.queue.Load(), "export": watch.export.Load()}
		},
	}, nil
}

// zipkinLosses counts what the library loses: it tells of its backlog in its log, and nothing of batches that were refused.
type zipkinLosses struct {
	client        *http.Client
	batch         int
	queue, export atomic.Uint64
}

// Serialize is called for one batch at a time, right before Do.
func (l *zipkinLosses) Serialize(spans []*model.SpanModel) ([]byte, error) {
	l.batch = len(spans)
	return reporter.JSONSerializer{}.Serialize(spans)
}

// ContentType is part of reporter.SpanSerializer.
func (l *zipkinLosses) ContentType() string { return reporter.JSONSerializer{}.ContentType() }

// Do sends a batch. One that was answered is not sent again, whatever the answer; one that was not stays in the backlog.
func (l *zipkinLosses) Do(request *http.Request) (*http.Response, error) {
	response, err := l.client.Do(request)
	if err == nil && (response.StatusCode < 200 || response.StatusCode > 299) {
		l.export.Add(uint64(l.batch))
	}
	return response, err
}

// Write takes lines of the library's log.
func (l *zipkinLosses) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, isBacklog := strings.CutPrefix(text, "backlog too long, disposing "); isBacklog {
		digits, _, _ := strings.Cut(rest, " ")
		spans, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a number was expected in `%s`", text)
		}
		l.queue.Add(spans)
		return len(line), nil
	}
	log.Print(text)
	return len(line), nil
}

// zipkinRedis makes a span of every command.
type zipkinRedis struct{ tracer *openzipkin.Tracer }

func (zipkinRedis) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h zipkinRedis) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		span, ctx := h.tracer.StartSpanFromContext(ctx, command.FullName(), openzipkin.Kind(model.Client))
		span.Tag("db.system", "redis")
		defer span.Finish()
		return next(ctx, command)
	}
}

func (zipkinRedis) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

const zipkinSpan = "zipkin:span"

// zipkinGorm makes a span of every statement that reads.
func zipkinGorm(db *gorm.DB, tracer *openzipkin.Tracer) error {
	before := func(db *gorm.DB) {
		span, ctx := tracer.StartSpanFromContext(db.Statement.Context, "select", openzipkin.Kind(model.Client))
		db.Statement.Context = ctx
		db.InstanceSet(zipkinSpan, span)
	}
	after := func(db *gorm.DB) {
		if span, isThere := db.InstanceGet(zipkinSpan); isThere {
			span := span.(openzipkin.Span)
			span.Tag("db.system", "mysql")
			span.Tag("db.statement", db.Statement.SQL.String())
			if db.Error != nil {
				openzipkin.TagError.Set(span, db.Error.Error())
			}
			span.Finish()
		}
	}
	callbacks := db.Callback()
	for _, err := range []error{
		callbacks.Query().Before("gorm:query").Register("zipkin:before", before),
		callbacks.Query().After("gorm:query").Register("zipkin:after", after),
		callbacks.Row().Before("gorm:row").Register("zipkin:before", before),
		callbacks.Row().After("gorm:row").Register("zipkin:after", after),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
