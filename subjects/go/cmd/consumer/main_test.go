//go:build !skywalking

package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"unladen/subjects/go/serve"
	"unladen/subjects/go/tracing"
)

func TestARequestIsThreeCallsAndFourSpansOfOneTrace(t *testing.T) {
	var called atomic.Int32
	var told atomic.Value
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		called.Add(1)
		told.Store(request.Header.Get("traceparent"))
		if value, err := strconv.ParseFloat(request.URL.Query().Get("v"), 64); err != nil || value < 1e7 {
			t.Errorf("asked for the root of `%s`", request.URL.Query().Get("v"))
		}
	}))
	defer provider.Close()
	tracer, spans := tracing.InMemory(tracing.Service{Name: "consumer"})
	engine := serve.Engine(tracer, nil)
	engine.GET("/consumer", consume(client(tracer), provider.URL, 35_000))
	request := httptest.NewRequest(http.MethodGet, "/consumer", nil)
	request.Header.Set("traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	answer := httptest.NewRecorder()
	engine.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK || answer.Body.String() != "success" || called.Load() != 3 {
		t.Fatalf("%d %s after %d calls", answer.Code, answer.Body, called.Load())
	}
	if made := spans(); len(made) != 4 {
		t.Errorf("%v", made)
	} else {
		for _, span := range made {
			if span.Trace != "0123456789abcdef0123456789abcdef" {
				t.Errorf("%v", span)
			}
		}
	}
	if header := told.Load().(string); len(header) != 55 || header[3:35] != "0123456789abcdef0123456789abcdef" {
		t.Errorf("the provider was told `%s`", header)
	}
}

func TestAProviderThatFailsFailsTheRequest(t *testing.T) {
	provider := httptest.NewServer(http.NotFoundHandler())
	defer provider.Close()
	engine := serve.Engine(&tracing.Tracer{}, nil)
	engine.GET("/consumer", consume(client(&tracing.Tracer{}), provider.URL, 1))
	answer := httptest.NewRecorder()
	engine.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/consumer", nil))
	if answer.Code != http.StatusInternalServerError {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

func TestTheBurnIsWork(t *testing.T) {
	if few, many := logarithms(10), logarithms(1000); !(many > 50*few) {
		t.Errorf("%g and %g", few, many)
	}
}
