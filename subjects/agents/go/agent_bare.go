//go:build !otel && !zipkin && !datadog && !elastic && !newrelic && !sentry && !skywalking

package main

import "database/sql"

// start starts nothing: the bare service.
func start() (*agent, error) { return &agent{open: sql.Open}, nil }
