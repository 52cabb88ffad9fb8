package http

import (
	"fmt"
	"net/http"

	"github.com/apache/skywalking-go/plugins/core/operator"
	"github.com/apache/skywalking-go/plugins/core/tracing"
)

// RoundTripInterceptor makes an exit span of every request to another service.
type RoundTripInterceptor struct{}

// BeforeInvoke begins it, and tells the other service of its trace.
func (*RoundTripInterceptor) BeforeInvoke(invocation operator.Invocation) error {
	request := invocation.Args()[0].(*http.Request)
	span, err := tracing.CreateExitSpan(request.Method+":"+request.URL.Path, request.Host,
		func(name, value string) error {
			request.Header.Add(name, value)
			return nil
		},
		tracing.WithLayer(tracing.SpanLayerHTTP), tracing.WithComponent(5005),
		tracing.WithTag(tracing.TagHTTPMethod, request.Method), tracing.WithTag(tracing.TagURL, request.Host+request.URL.Path))
	if err != nil {
		return err
	}
	invocation.SetContext(span)
	return nil
}

// AfterInvoke ends it.
func (*RoundTripInterceptor) AfterInvoke(invocation operator.Invocation, results ...interface{}) error {
	span, isThere := invocation.GetContext().(tracing.Span)
	if !isThere {
		return nil
	}
	if response, isAnswered := results[0].(*http.Response); isAnswered && response != nil {
		span.Tag(tracing.TagStatusCode, fmt.Sprintf("%d", response.StatusCode))
	}
	if err, isFailed := results[1].(error); isFailed && err != nil {
		span.Error(err.Error())
	}
	span.End()
	return nil
}
