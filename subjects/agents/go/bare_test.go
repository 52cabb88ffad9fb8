//go:build !otel && !zipkin && !datadog && !elastic && !newrelic && !sentry

package main

import "testing"

var spansOfARequest []string

func recorded(t *testing.T) (*agent, func() []made) {
	agent, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return agent, func() []made { return nil }
}
