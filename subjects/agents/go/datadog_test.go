//go:build datadog

package main

import (
	"fmt"
	"testing"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/mocktracer"
)

var spansOfARequest = []string{"fake.query", "fake.query", "fake.query", "http.request"}

func recorded(t *testing.T) (*agent, func() []made) {
	tracer := mocktracer.Start()
	t.Cleanup(tracer.Stop)
	return instrumented(), func() []made {
		var spans []made
		for _, span := range tracer.FinishedSpans() {
			// That of opening the connection, before the request.
			if span.Tag("sql.query_type") != "Connect" {
				spans = append(spans, made{fmt.Sprintf("%016x", span.TraceID()), span.OperationName()})
			}
		}
		return spans
	}
}
