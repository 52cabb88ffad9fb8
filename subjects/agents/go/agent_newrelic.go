//go:build newrelic

package main

import (
	"context"
	"database/sql"
	"net/http"
	"slices"
	"time"

	"github.com/newrelic/go-agent/v3/newrelic"
)

// start starts New Relic's agent with its wrapper of net/http and its driver of database/sql. NEW_RELIC_… says the rest.
func start() (*agent, error) {
	return instrumented(newrelic.ConfigFromEnvironment())
}

func instrumented(options ...newrelic.ConfigOption) (*agent, error) {
	app, err := newrelic.NewApplication(options...)
	if err != nil {
		return nil, err
	}
	return &agent{
		open: openInstrumented,
		serve: func(mux *http.ServeMux) http.Handler {
			_, handler := newrelic.WrapHandle(app, "/products/{number}", mux)
			return handler
		},
		stop: func(ctx context.Context) error {
			until, _ := ctx.Deadline()
			app.Shutdown(time.Until(until))
			return nil
		},
	}, nil
}

// openInstrumented is sql.Open with the agent around the driver. Its own module for pgx is for pgx without database/sql.
func openInstrumented(driver, source string) (*sql.DB, error) {
	wrapped := "newrelic-" + driver
	if !slices.Contains(sql.Drivers(), wrapped) {
		plain, err := sql.Open(driver, source)
		if err != nil {
			return nil, err
		}
		defer plain.Close()
		sql.Register(wrapped, newrelic.InstrumentSQLDriver(plain.Driver(), newrelic.SQLDriverSegmentBuilder{
			BaseSegment: newrelic.DatastoreSegment{Product: newrelic.DatastorePostgres},
		}))
	}
	return sql.Open(wrapped, source)
}
