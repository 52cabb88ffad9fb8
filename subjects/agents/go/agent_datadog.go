//go:build datadog

package main

import (
	"context"
	"database/sql"
	"net/http"

	sqltrace "github.com/DataDog/dd-trace-go/contrib/database/sql/v2"
	httptrace "github.com/DataDog/dd-trace-go/contrib/net/http/v2"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
)

// start starts Datadog's tracer with its integrations of net/http and database/sql. DD_… says the rest.
func start() (*agent, error) {
	if err := tracer.Start(); err != nil {
		return nil, err
	}
	return instrumented(), nil
}

func instrumented() *agent {
	return &agent{
		open:  func(driver, source string) (*sql.DB, error) { return sqltrace.Open(driver, source) },
		serve: func(mux *http.ServeMux) http.Handler { return httptrace.NewServeMux(httptrace.WithServeMux(mux)) },
		stop: func(context.Context) error {
			tracer.Stop()
			return nil
		},
	}
}
