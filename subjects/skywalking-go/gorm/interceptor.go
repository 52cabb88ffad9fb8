package gorm

import (
	"gorm.io/gorm"

	"github.com/apache/skywalking-go/plugins/core/operator"
	"github.com/apache/skywalking-go/plugins/core/tracing"
)

// ExecuteInterceptor makes an exit span of every statement.
type ExecuteInterceptor struct{}

// BeforeInvoke begins it.
func (*ExecuteInterceptor) BeforeInvoke(invocation operator.Invocation) error {
	db := invocation.Args()[0].(*gorm.DB)
	name := "unknown"
	if db.Dialector != nil {
		name = db.Dialector.Name()
	}
	span, err := tracing.CreateExitSpan("gorm/execute", name,
		func(string, string) error { return nil },
		tracing.WithLayer(tracing.SpanLayerDatabase), tracing.WithComponent(5), tracing.WithTag(tracing.TagDBType, name))
	if err != nil {
		return err
	}
	// The statement is reset before the method returns.
	span.Tag(tracing.TagDBStatement, db.Statement.SQL.String())
	invocation.SetContext(span)
	return nil
}

// AfterInvoke ends it.
func (*ExecuteInterceptor) AfterInvoke(invocation operator.Invocation, _ ...interface{}) error {
	span, isThere := invocation.GetContext().(tracing.Span)
	if !isThere {
		return nil
	}
	if err := invocation.Args()[0].(*gorm.DB).Error; err != nil {
		span.Error(err.Error())
	}
	span.End()
	return nil
}
