package sql

import (
	"github.com/apache/skywalking-go/plugins/core/operator"
	"github.com/apache/skywalking-go/plugins/core/tracing"
)

// QueryInterceptor makes an exit span of every query.
type QueryInterceptor struct{}

// BeforeInvoke begins it.
func (*QueryInterceptor) BeforeInvoke(invocation operator.Invocation) error {
	text, _ := invocation.Args()[1].(string)
	span, err := tracing.CreateExitSpan("postgresql/query", "postgresql",
		func(string, string) error { return nil },
		tracing.WithLayer(tracing.SpanLayerDatabase), tracing.WithComponent(22),
		tracing.WithTag(tracing.TagDBType, "postgresql"), tracing.WithTag(tracing.TagDBStatement, text))
	if err != nil {
		return err
	}
	invocation.SetContext(span)
	return nil
}

// AfterInvoke ends it.
func (*QueryInterceptor) AfterInvoke(invocation operator.Invocation, results ...interface{}) error {
	span, isThere := invocation.GetContext().(tracing.Span)
	if !isThere {
		return nil
	}
	if err, isFailed := results[1].(error); isFailed && err != nil {
		span.Error(err.Error())
	}
	span.End()
	return nil
}
