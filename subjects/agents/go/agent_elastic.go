//go:build elastic

package main

import (
	"context"
	"database/sql"
	"net/http"
	"slices"

	"go.elastic.co/apm/module/apmhttp/v2"
	"go.elastic.co/apm/module/apmsql/v2"
	"go.elastic.co/apm/v2"
)

// start starts Elastic's APM agent with its modules for net/http and database/sql. ELASTIC_APM_… says the rest.
func start() (*agent, error) { return instrumented(apm.DefaultTracer()), nil }

func instrumented(tracer *apm.Tracer) *agent {
	return &agent{
		open: func(driver, source string) (*sql.DB, error) {
			bare, err := sql.Open(driver, source)
			if err != nil {
				return nil, err
			}
			defer bare.Close()
			if !slices.Contains(sql.Drivers(), apmsql.DriverPrefix+driver) {
				apmsql.Register(driver, bare.Driver())
			}
			return apmsql.Open(driver, source)
		},
		serve: func(mux *http.ServeMux) http.Handler { return apmhttp.Wrap(mux, apmhttp.WithTracer(tracer)) },
		stop: func(ctx context.Context) error {
			tracer.Flush(ctx.Done())
			tracer.Close()
			return nil
		},
	}
}
