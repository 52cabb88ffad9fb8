package goredis

import (
	"github.com/redis/go-redis/v9"

	"github.com/apache/skywalking-go/plugins/core/operator"
	"github.com/apache/skywalking-go/plugins/core/tracing"
)

// ProcessInterceptor makes an exit span of every command.
type ProcessInterceptor struct{}

// BeforeInvoke begins it.
func (*ProcessInterceptor) BeforeInvoke(invocation operator.Invocation) error {
	command := invocation.Args()[1].(redis.Cmder)
	client := invocation.CallerInstance().(*redis.Client)
	span, err := tracing.CreateExitSpan("redis/"+command.FullName(), client.Options().Addr,
		func(string, string) error { return nil },
		tracing.WithLayer(tracing.SpanLayerCache), tracing.WithComponent(7),
		tracing.WithTag(tracing.TagCacheType, "redis"), tracing.WithTag(tracing.TagCacheCmd, command.FullName()))
	if err != nil {
		return err
	}
	invocation.SetContext(span)
	return nil
}

// AfterInvoke ends it.
func (*ProcessInterceptor) AfterInvoke(invocation operator.Invocation, results ...interface{}) error {
	span, isThere := invocation.GetContext().(tracing.Span)
	if !isThere {
		return nil
	}
	if err, isFailed := results[0].(error); isFailed && err != nil && err != redis.Nil {
		span.Error(err.Error())
	}
	span.End()
	return nil
}
