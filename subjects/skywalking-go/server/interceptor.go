package server

import (
	"fmt"
	"net/http"

	"github.com/apache/skywalking-go/plugins/core/operator"
	"github.com/apache/skywalking-go/plugins/core/tracing"
)

// ServeInterceptor makes the entry span of every request.
type ServeInterceptor struct{}

// statusWriter knows what was answered.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader is part of http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// BeforeInvoke begins it, in the trace that the caller's header names.
func (*ServeInterceptor) BeforeInvoke(invocation operator.Invocation) error {
	request := invocation.Args()[1].(*http.Request)
	span, err := tracing.CreateEntrySpan(request.Method+":"+request.URL.Path,
		func(name string) (string, error) { return request.Header.Get(name), nil },
		tracing.WithLayer(tracing.SpanLayerHTTP), tracing.WithComponent(5004),
		tracing.WithTag(tracing.TagHTTPMethod, request.Method), tracing.WithTag(tracing.TagURL, request.Host+request.URL.Path))
	if err != nil {
		return err
	}
	writer := invocation.Args()[0].(http.ResponseWriter)
	// The weaver moves this into net/http, and misses `http.` in front of some constants.
	invocation.ChangeArg(0, &statusWriter{ResponseWriter: writer, status: 200})
	invocation.SetContext(span)
	return nil
}

// AfterInvoke ends it.
func (*ServeInterceptor) AfterInvoke(invocation operator.Invocation, _ ...interface{}) error {
	span, isThere := invocation.GetContext().(tracing.Span)
	if !isThere {
		return nil
	}
	if writer, isOurs := invocation.Args()[0].(*statusWriter); isOurs {
		span.Tag(tracing.TagStatusCode, fmt.Sprintf("%d", writer.status))
		if writer.status >= 500 {
			span.Error()
		}
	}
	span.End()
	return nil
}
