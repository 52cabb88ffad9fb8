package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"

	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"
)

func elastic(address string, traces int, sent *Sent) error {
	// Else the agent asks the addresses at which clouds tell machines about themselves.
	os.Setenv("ELASTIC_APM_CLOUD_PROVIDER", "none")
	// Sent, but none of the spans that are counted here.
	os.Setenv("ELASTIC_APM_METRICS_INTERVAL", "1s")
	server := &url.URL{Scheme: "http", Host: address}
	sender, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{ServerURLs: []*url.URL{server}})
	if err != nil {
		return err
	}
	// Elastic's names of services are ASCII.
	const service = "pets"
	tracer, err := apm.NewTracerOptions(apm.TracerOptions{ServiceName: service, Transport: sender})
	if err != nil {
		return err
	}
	// By default the agent throws away what is short, and joins what is alike.
	tracer.SetExitSpanMinDuration(0)
	tracer.SetSpanCompressionEnabled(false)
	outcome := func(span Span) string {
		if span.IsError {
			return "failure"
		}
		return "success"
	}
	first := start()
	for number := range traces {
		spans := trace(first, number)
		transaction := tracer.StartTransactionOptions(spans[0].Operation, "request", apm.TransactionOptions{Start: spans[0].Start})
		transaction.Context.SetLabel("number", number)
		transaction.Context.SetLabel("text", spans[0].Text)
		transaction.Outcome = outcome(spans[0])
		transaction.Duration = spans[0].Duration
		contexts := []apm.TraceContext{transaction.TraceContext()}
		add := func(index int, kind string) {
			span, context, parent := spans[index], contexts[index], ""
			if span.Parent >= 0 {
				parent = contexts[span.Parent].Span.String()
			}
			status := "ok"
			if span.IsError {
				status = "error"
			}
			sent.add(Row{
				TraceID: context.Trace.String(), SpanID: context.Span.String(), ParentID: &parent, Service: service,
				Operation: span.Operation, Kind: kind, Status: status,
				StartNs: span.Start.UnixNano(), DurationNs: int64(span.Duration),
				Attributes: map[string]any{"number": span.Number, "text": span.Text},
			})
		}
		live := []*apm.Span{nil}
		for index, span := range spans[1:] {
			kind := map[string]string{"internal": "app", "client": "db.mysql.query"}[span.Kind]
			one := transaction.StartSpanOptions(span.Operation, kind, apm.SpanOptions{Start: span.Start, Parent: contexts[index]})
			one.Context.SetLabel("number", span.Number)
			one.Context.SetLabel("text", span.Text)
			one.Outcome = outcome(span)
			one.Duration = span.Duration
			contexts, live = append(contexts, one.TraceContext()), append(live, one)
		}
		for index := len(spans) - 1; index > 0; index-- {
			live[index].End()
			add(index, spans[index].Kind)
		}
		transaction.End()
		add(0, "server")
		// The agent's own buffer is smaller than all that is sent.
		if number%100 == 99 {
			tracer.Flush(nil)
		}
	}
	tracer.Flush(nil)
	tracer.Close()
	stats := tracer.Stats()
	if stats.SpansDropped+stats.TransactionsDropped > 0 || stats.Errors.SendStream > 0 {
		return errors.New(fmt.Sprintf("the agent tells of losses: %+v", stats))
	}
	return nil
}
