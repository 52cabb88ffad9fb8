package gin

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"github.com/apache/skywalking-go/plugins/core/operator"
	"github.com/apache/skywalking-go/plugins/core/tracing"
)

// ServeInterceptor makes the entry span of every request.
type ServeInterceptor struct{}

// BeforeInvoke begins it, in the trace that the caller's header names.
func (*ServeInterceptor) BeforeInvoke(invocation operator.Invocation) error {
	request := invocation.Args()[0].(*gin.Context).Request
	span, err := tracing.CreateEntrySpan(request.Method+":"+request.URL.Path,
		func(name string) (string, error) { return request.Header.Get(name), nil },
		tracing.WithLayer(tracing.SpanLayerHTTP), tracing.WithComponent(5006),
		tracing.WithTag(tracing.TagHTTPMethod, request.Method), tracing.WithTag(tracing.TagURL, request.Host+request.URL.Path))
	if err != nil {
		return err
	}
	invocation.SetContext(span)
	return nil
}

// AfterInvoke ends it.
func (*ServeInterceptor) AfterInvoke(invocation operator.Invocation, _ ...interface{}) error {
	span, isThere := invocation.GetContext().(tracing.Span)
	if !isThere {
		return nil
	}
	served := invocation.Args()[0].(*gin.Context)
	span.Tag(tracing.TagStatusCode, fmt.Sprintf("%d", served.Writer.Status()))
	if len(served.Errors) > 0 {
		span.Error(served.Errors.String())
	}
	span.End()
	return nil
}
