// Sends spans to one receiver of `unladen sink` through a real SDK, and prints every span that it sent as a line of JSON,
// with the ids that the SDK gave it. `go run . SENDER ADDRESS TRACES`.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// service is what every sender of this program calls itself.
const service = "pets-größe-🐾"

var senders = map[string]func(address string, traces int, sent *Sent) error{
	"otlp-grpc":       otlpGRPC,
	"otlp-http":       otlpHTTP,
	"zipkin-json":     zipkinJSON,
	"zipkin-protobuf": zipkinProtobuf,
	"elastic":         elastic,
	"jaeger":          jaegerThrift,
	"skywalking":      skywalking,
}

// Span is what a sender is to send.
type Span struct {
	Operation string
	Kind      string
	// Index of the parent in the trace; -1 for the root.
	Parent int
	// In whole microseconds: some protocols have no more.
	Start    time.Time
	Duration time.Duration
	IsError  bool
	Number   int
	Text     string
}

// End of the span.
func (span Span) End() time.Time { return span.Start.Add(span.Duration) }

// trace is the number-th of all traces: a request, a step within the service, and a query, which fails every fifth time.
func trace(first time.Time, number int) []Span {
	start := first.Add(time.Duration(number) * time.Millisecond)
	text := fmt.Sprintf("größe 🐾 %d", number)
	at := func(after time.Duration) time.Time { return start.Add(after * time.Microsecond) }
	return []Span{
		{"GET /pets/{id}", "server", -1, start, time.Duration(900+number) * time.Microsecond, false, number, text},
		{"wählt 名前 🐾", "internal", 0, at(100), 700 * time.Microsecond, false, number, text},
		{"SELECT pets", "client", 1, at(200), 500 * time.Microsecond, number%5 == 0, number, text},
	}
}

// start of the first trace.
func start() time.Time { return time.Now().Add(-time.Second).Truncate(time.Microsecond) }

// Sent prints what was sent.
type Sent struct{ out *json.Encoder }

// Row is one span as the test finds it in the store. Fields that are empty are not compared.
type Row struct {
	TraceID         string         `json:"trace_id,omitempty"`
	SpanID          string         `json:"span_id,omitempty"`
	ParentID        *string        `json:"parent_id,omitempty"`
	ParentOperation *string        `json:"parent_operation,omitempty"`
	Service         string         `json:"service"`
	Instance        string         `json:"instance,omitempty"`
	Operation       string         `json:"operation"`
	Kind            string         `json:"kind"`
	Status          string         `json:"status"`
	StartNs         int64          `json:"start_ns,omitempty"`
	DurationNs      int64          `json:"duration_ns,omitempty"`
	Attributes      map[string]any `json:"attributes"`
}

// add prints a row.
func (sent *Sent) add(row Row) {
	if err := sent.out.Encode(row); err != nil {
		fail(err)
	}
}

// text is a pointer to a text, which distinguishes "" from not compared.
func text(text string) *string { return &text }

// complaints are what an SDK writes into its log, where most of them tell of losses, and nowhere else.
type complaints struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (heard *complaints) Write(line []byte) (int, error) {
	heard.mutex.Lock()
	defer heard.mutex.Unlock()
	return heard.text.Write(line)
}

// err is nil if there was none.
func (heard *complaints) err() error {
	heard.mutex.Lock()
	defer heard.mutex.Unlock()
	if heard.text.Len() == 0 {
		return nil
	}
	return fmt.Errorf("the SDK complains: %s", heard.text.String())
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 4 || senders[os.Args[1]] == nil {
		fail(fmt.Errorf("give a sender, an address and how many traces to send"))
	}
	traces, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	if err := senders[os.Args[1]](os.Args[2], traces, &Sent{json.NewEncoder(os.Stdout)}); err != nil {
		fail(err)
	}
}
