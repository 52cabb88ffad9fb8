//go:build elastic

package main

import (
	"encoding/hex"
	"testing"

	"go.elastic.co/apm/v2/apmtest"
	"go.elastic.co/apm/v2/model"
)

var spansOfARequest = []string{"GET /products/7", "SELECT FROM product", "SELECT FROM review", "SELECT FROM stock"}

// As with `elastic-all` in the study: the fake database answers too fast for spans of it to be sent.
func recorded(t *testing.T) (*agent, func() []made) {
	tracer := apmtest.NewRecordingTracer()
	tracer.SetExitSpanMinDuration(0)
	tracer.SetSpanCompressionEnabled(false)
	t.Cleanup(tracer.Close)
	return instrumented(tracer.Tracer), func() []made {
		tracer.Flush(nil)
		var spans []made
		add := func(trace model.TraceID, name string) {
			spans = append(spans, made{hex.EncodeToString(trace[:]), name})
		}
		for _, transaction := range tracer.Payloads().Transactions {
			add(transaction.TraceID, transaction.Name)
		}
		for _, span := range tracer.Payloads().Spans {
			add(span.TraceID, span.Name)
		}
		return spans
	}
}
