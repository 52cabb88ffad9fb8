package main

import (
	"log"
	"strconv"
	"strings"

	zipkin "github.com/openzipkin/zipkin-go"
	"github.com/openzipkin/zipkin-go/model"
	"github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"github.com/openzipkin/zipkin-go/reporter"
	zipkinhttp "github.com/openzipkin/zipkin-go/reporter/http"
)

func zipkinJSON(address string, traces int, sent *Sent) error {
	return zipkinSpans(address, reporter.JSONSerializer{}, traces, sent)
}

func zipkinProtobuf(address string, traces int, sent *Sent) error {
	return zipkinSpans(address, zipkin_proto3.SpanSerializer{}, traces, sent)
}

func zipkinSpans(address string, serializer reporter.SpanSerializer, traces int, sent *Sent) error {
	heard := &complaints{}
	report := zipkinhttp.NewReporter("http://"+address+"/api/v2/spans", zipkinhttp.Serializer(serializer),
		zipkinhttp.MaxBacklog(3*traces), zipkinhttp.Logger(log.New(heard, "", 0)))
	endpoint, err := zipkin.NewEndpoint(service, "127.0.0.1:8080")
	if err != nil {
		return err
	}
	tracer, err := zipkin.NewTracer(report, zipkin.WithLocalEndpoint(endpoint), zipkin.WithTraceID128Bit(true),
		zipkin.WithSharedSpans(false))
	if err != nil {
		return err
	}
	kinds := map[string]model.Kind{"server": model.Server, "internal": model.Undetermined, "client": model.Client}
	first := start()
	for number := range traces {
		live := []zipkin.Span{}
		for _, span := range trace(first, number) {
			options := []zipkin.SpanOption{zipkin.Kind(kinds[span.Kind]), zipkin.StartTime(span.Start)}
			if span.Parent >= 0 {
				options = append(options, zipkin.Parent(live[span.Parent].Context()))
			}
			one := tracer.StartSpan(span.Operation, options...)
			one.Tag("number", strconv.Itoa(span.Number))
			one.Tag("text", span.Text)
			status := "unset"
			if span.IsError {
				zipkin.TagError.Set(one, "no such pet")
				status = "error"
			}
			one.FinishedWithDuration(span.Duration)
			live = append(live, one)
			parent := ""
			if one.Context().ParentID != nil {
				parent = one.Context().ParentID.String()
			}
			kind := span.Kind
			if kind == "internal" {
				kind = "unspecified"
			}
			operation := span.Operation
			if _, isJSON := serializer.(reporter.JSONSerializer); isJSON {
				// As the library writes it; in protobuf it leaves names as they are.
				operation = strings.ToLower(operation)
			}
			sent.add(Row{
				TraceID: one.Context().TraceID.String(), SpanID: one.Context().ID.String(), ParentID: &parent,
				Service: service, Operation: operation, Kind: kind, Status: status,
				StartNs: span.Start.UnixNano(), DurationNs: int64(span.Duration),
				Attributes: map[string]any{"number": strconv.Itoa(span.Number), "text": span.Text},
			})
		}
	}
	if err := report.Close(); err != nil {
		return err
	}
	return heard.err()
}
