//go:build newrelic

package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/newrelic/go-agent/v3/newrelic"
)

var spansOfARequest = []string{"Datastore/operation/Postgres/other", "Datastore/operation/Postgres/other", "Datastore/operation/Postgres/other", "WebTransaction/Go/GET /products/{number}"}

// collector is New Relic's, as far as the agent needs it to hand in spans.
type collector struct {
	sync.Mutex
	spans     []made
	connected chan struct{}
}

func (c *collector) RoundTrip(request *http.Request) (*http.Response, error) {
	answer := map[string]any{}
	switch request.URL.Query().Get("method") {
	case "preconnect":
		answer["redirect_host"] = "collector"
	case "connect":
		defer close(c.connected)
		answer = map[string]any{"agent_run_id": "1", "collect_span_events": true, "account_id": "1", "trusted_account_key": "1", "primary_application_id": "1"}
	case "span_event_data":
		if err := c.take(request.Body); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(map[string]any{"return_value": answer})
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(body)))}, err
}

func (c *collector) take(body io.Reader) error {
	plain, err := gzip.NewReader(body)
	if err != nil {
		return err
	}
	var harvest []json.RawMessage
	if err := json.NewDecoder(plain).Decode(&harvest); err != nil {
		return err
	}
	var events [][]map[string]any
	if err := json.Unmarshal(harvest[2], &events); err != nil {
		return err
	}
	c.Lock()
	defer c.Unlock()
	for _, event := range events {
		c.spans = append(c.spans, made{event[0]["traceId"].(string), event[0]["name"].(string)})
	}
	return nil
}

func recorded(t *testing.T) (*agent, func() []made) {
	collector := &collector{connected: make(chan struct{})}
	agent, err := instrumented(
		newrelic.ConfigAppName(name), newrelic.ConfigLicense(strings.Repeat("unladen!", 5)),
		func(config *newrelic.Config) { config.Transport = collector })
	if err != nil {
		t.Fatal(err)
	}
	// A request that comes before the agent is connected is of no caller's trace. The answer takes it a moment.
	<-collector.connected
	time.Sleep(200 * time.Millisecond)
	return agent, func() []made {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := agent.stop(ctx); err != nil {
			t.Fatal(err)
		}
		collector.Lock()
		defer collector.Unlock()
		return collector.spans
	}
}
