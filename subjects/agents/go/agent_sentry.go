//go:build sentry

package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"github.com/getsentry/sentry-go"
	sentryhttp "github.com/getsentry/sentry-go/http"
)

// start starts Sentry's SDK with its handler for net/http; all requests are sampled that do not say otherwise. SENTRY_DSN says where to.
func start() (*agent, error) {
	return instrumented(sentry.ClientOptions{EnableTracing: true, TracesSampleRate: 1})
}

// Of database/sql the SDK's own integration, `sentrysql`, is a module that the Go proxy does not have. So statements are spans of the
// service's own, with the attributes that Sentry's documentation asks for.
func instrumented(options sentry.ClientOptions) (*agent, error) {
	if err := sentry.Init(options); err != nil {
		return nil, err
	}
	return &agent{
		open:  sql.Open,
		serve: func(mux *http.ServeMux) http.Handler { return sentryhttp.New(sentryhttp.Options{}).Handle(mux) },
		statement: func(ctx context.Context, text string) (context.Context, func()) {
			span := sentry.StartSpan(ctx, "db.sql.query", sentry.WithDescription(text))
			span.SetData("db.system", "postgresql")
			return span.Context(), span.Finish
		},
		stop: func(ctx context.Context) error {
			until, _ := ctx.Deadline()
			if !sentry.Flush(time.Until(until)) {
				return errors.New("Sentry had not sent all of its events in time")
			}
			return nil
		},
	}, nil
}
