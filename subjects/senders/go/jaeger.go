package main

import (
	"fmt"

	"github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	jaeger "github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"
)

// jaegerLog is a log of Jaeger's client, of which only errors are kept.
type jaegerLog struct{ *complaints }

func (log jaegerLog) Error(message string)     { fmt.Fprintln(log, message) }
func (log jaegerLog) Infof(_ string, _ ...any) {}

func jaegerThrift(address string, traces int, sent *Sent) error {
	heard := jaegerLog{&complaints{}}
	reporter := jaeger.NewRemoteReporter(
		transport.NewHTTPTransport("http://"+address+"/api/traces?format=jaeger.thrift", transport.HTTPBatchSize(100)),
		jaeger.ReporterOptions.QueueSize(3*traces), jaeger.ReporterOptions.Logger(heard))
	tracer, closer := jaeger.NewTracer(service, jaeger.NewConstSampler(true), reporter,
		jaeger.TracerOptions.Gen128Bit(true), jaeger.TracerOptions.Logger(heard))
	first := start()
	for number := range traces {
		live := []opentracing.Span{}
		for _, span := range trace(first, number) {
			options := []opentracing.StartSpanOption{
				opentracing.StartTime(span.Start),
				opentracing.Tags{"number": span.Number, "text": span.Text, "fraction": 0.5, "truth": true},
			}
			kind := "unspecified"
			switch span.Kind {
			case "server":
				options, kind = append(options, ext.SpanKindRPCServer), "server"
			case "client":
				options, kind = append(options, ext.SpanKindRPCClient), "client"
			}
			if span.Parent >= 0 {
				options = append(options, opentracing.ChildOf(live[span.Parent].Context()))
			}
			one := tracer.StartSpan(span.Operation, options...)
			status := "unset"
			if span.IsError {
				ext.Error.Set(one, true)
				status = "error"
			}
			one.FinishWithOptions(opentracing.FinishOptions{FinishTime: span.End()})
			live = append(live, one)
			context := one.Context().(jaeger.SpanContext)
			parent := ""
			if span.Parent >= 0 {
				parent = fmt.Sprintf("%016x", uint64(context.ParentID()))
			}
			sent.add(Row{
				TraceID: fmt.Sprintf("%016x%016x", context.TraceID().High, context.TraceID().Low),
				SpanID:  fmt.Sprintf("%016x", uint64(context.SpanID())), ParentID: &parent, Service: service,
				Operation: span.Operation, Kind: kind, Status: status,
				StartNs: span.Start.UnixNano(), DurationNs: int64(span.Duration),
				Attributes: map[string]any{"number": span.Number, "text": span.Text, "fraction": 0.5, "truth": true},
			})
		}
	}
	if err := closer.Close(); err != nil {
		return err
	}
	return heard.err()
}
