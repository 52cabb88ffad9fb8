package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/SkyAPM/go2sky"
	"github.com/SkyAPM/go2sky/reporter"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	agent "skywalking.apache.org/repo/goapi/collect/language/agent/v3"
)

// plain text, and word of the end of the connection: the reporter closes it when the receiver has answered the last
// stream, and tells nobody else that all is sent.
type plain struct {
	credentials.TransportCredentials
	closed func()
}

func (plain plain) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return plain.TransportCredentials.ClientHandshake(ctx, authority, connection{raw, plain.closed})
}

func (plain plain) Clone() credentials.TransportCredentials { return plain }

type connection struct {
	net.Conn
	closed func()
}

func (connection connection) Close() error {
	defer connection.closed()
	return connection.Conn.Close()
}

// skywalking sends for every trace two segments: a request with an exit, and what that calls. The SDK gives no ids of
// spans to the outside, so parents are named by their operation.
func skywalking(address string, traces int, sent *Sent) error {
	heard, closed := &complaints{}, make(chan struct{})
	ended := plain{insecure.NewCredentials(), sync.OnceFunc(func() { close(closed) })}
	// Segments are handed over by goroutines of the SDK, which fail if the reporter is closed before them.
	segments := sync.WaitGroup{}
	segments.Add(2 * traces)
	count := func(*agent.SegmentObject) bool {
		segments.Done()
		return true
	}
	report, err := reporter.NewGRPCReporter(address, reporter.WithCheckInterval(100*time.Millisecond),
		reporter.WithReportStrategy(count),
		reporter.WithTransportCredentials(ended), reporter.WithLogger(log.New(heard, "", 0)))
	if err != nil {
		return err
	}
	tracer, err := go2sky.NewTracer(service, go2sky.WithReporter(report), go2sky.WithInstance("one"))
	if err != nil {
		return err
	}
	for number := range traces {
		texts := map[string]string{}
		tag := func(span go2sky.Span) {
			span.Tag("number", strconv.Itoa(number))
			span.Tag("text", fmt.Sprintf("größe 🐾 %d", number))
		}
		row := func(ctx context.Context, operation, parent, kind, status string) {
			sent.add(Row{
				TraceID: go2sky.TraceID(ctx), ParentOperation: &parent, Service: service, Instance: "one",
				Operation: operation, Kind: kind, Status: status,
				Attributes: map[string]any{"number": strconv.Itoa(number), "text": fmt.Sprintf("größe 🐾 %d", number)},
			})
		}
		none := func(string) (string, error) { return "", nil }
		entry, ctx, err := tracer.CreateEntrySpan(context.Background(), "GET /pets/{id}", none)
		if err != nil {
			return err
		}
		entry.SetSpanLayer(agent.SpanLayer_Http)
		tag(entry)
		local, inner, err := tracer.CreateLocalSpan(ctx, go2sky.WithOperationName("wählt 名前 🐾"))
		if err != nil {
			return err
		}
		tag(local)
		exit, err := tracer.CreateExitSpan(inner, "calls prices", "127.0.0.1:8081", func(key, value string) error {
			texts[key] = value
			return nil
		})
		if err != nil {
			return err
		}
		exit.SetSpanLayer(agent.SpanLayer_Http)
		tag(exit)
		status := "unset"
		if number%5 == 0 {
			exit.Error(time.Now(), "event", "error")
			status = "error"
		}
		far, other, err := tracer.CreateEntrySpan(context.Background(), "GET /prices", func(key string) (string, error) {
			return texts[key], nil
		})
		if err != nil {
			return err
		}
		tag(far)
		far.End()
		row(other, "GET /prices", "calls prices", "server", "unset")
		exit.End()
		row(ctx, "calls prices", "wählt 名前 🐾", "client", status)
		local.End()
		row(ctx, "wählt 名前 🐾", "GET /pets/{id}", "internal", "unset")
		entry.End()
		row(ctx, "GET /pets/{id}", "", "server", "unset")
	}
	segments.Wait()
	// Once it is closed, it complains of that.
	complaint := heard.err()
	report.Close()
	<-closed
	return complaint
}
