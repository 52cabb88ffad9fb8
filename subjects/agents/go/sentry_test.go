//go:build sentry

package main

import (
	"testing"

	"github.com/getsentry/sentry-go"
)

var spansOfARequest = []string{"GET /products/{number}", "db.sql.query", "db.sql.query", "db.sql.query"}

func recorded(t *testing.T) (*agent, func() []made) {
	transport := &sentry.MockTransport{}
	agent, err := instrumented(sentry.ClientOptions{Dsn: "http://unladen@127.0.0.1/1", EnableTracing: true, TracesSampleRate: 1, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return agent, func() []made {
		var spans []made
		for _, event := range transport.Events() {
			trace := event.Contexts["trace"]["trace_id"].(sentry.TraceID)
			spans = append(spans, made{trace.String(), event.Transaction})
			for _, span := range event.Spans {
				spans = append(spans, made{span.TraceID.String(), span.Op})
			}
		}
		return spans
	}
}
