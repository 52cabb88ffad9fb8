//go:build !skywalking

package tracing

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// held takes no batch until it is let go, and refuses all if it is told so.
type held struct {
	release chan struct{}
	fails   bool
	taken   int
}

func (h *held) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	<-h.release
	if h.fails {
		return errors.New("refused")
	}
	h.taken += len(spans)
	return nil
}
func (*held) Shutdown(context.Context) error { return nil }

func make10000() {
	spans := otel.GetTracerProvider().Tracer("test")
	for range 10_000 {
		_, span := spans.Start(context.Background(), "span")
		span.End()
	}
}

func TestWhatOpenTelemetryDropsIsCounted(t *testing.T) {
	backend := &held{release: make(chan struct{})}
	tracer := otlpTo(backend, Service{Name: "test"})
	make10000()
	close(backend.release)
	var said bytes.Buffer
	tracer.Stop(&said)
	lost := tracer.Lost()
	// The queue holds 2,048; a batch of 512 may be out of it.
	if lost["queue"] < 10_000-2_048-512 || lost["queue"] > 10_000-2_048 || lost["export"] != 0 {
		t.Errorf("%v", lost)
	}
	if backend.taken+int(lost["queue"]) != 10_000 {
		t.Errorf("%d were taken and %d lost, of 10,000", backend.taken, lost["queue"])
	}
	if !bytes.Contains(said.Bytes(), []byte("spans at queue\n")) {
		t.Errorf("it says %s", &said)
	}
}

func TestWhatIsRefusedIsCounted(t *testing.T) {
	backend := &held{release: make(chan struct{}), fails: true}
	close(backend.release)
	tracer := otlpTo(backend, Service{Name: "test"})
	make10000()
	tracer.Stop(&bytes.Buffer{})
	if lost := tracer.Lost(); lost["export"] == 0 || lost["queue"]+lost["export"] != 10_000 {
		t.Errorf("%v", lost)
	}
}

func TestWhatZipkinThrowsAwayIsCounted(t *testing.T) {
	release := make(chan struct{})
	var first sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := http.StatusAccepted
		first.Do(func() {
			<-release
			status = http.StatusServiceUnavailable
		})
		w.WriteHeader(status)
	}))
	defer server.Close()
	t.Setenv("ZIPKIN_URL", server.URL)
	t.Setenv("ZIPKIN_MAX_BACKLOG", "1000")
	tracer, err := zipkin(Service{Name: "test", Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	handler := tracer.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 5_000 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/work", nil))
	}
	time.Sleep(50 * time.Millisecond)
	close(release)
	tracer.Stop(&bytes.Buffer{})
	lost := tracer.Lost()
	if lost["queue"] != 4_000 || lost["export"] == 0 {
		t.Errorf("%v; 4,000 of 5,000 are more than the backlog holds, and the first batch was refused", lost)
	}
}

func TestATracerThatIsNotThereIsNamed(t *testing.T) {
	t.Setenv("TRACER", "jaeger")
	if _, err := Start(Service{}); err == nil || !bytes.Contains([]byte(err.Error()), []byte("apm, none, otlp, zipkin")) {
		t.Error(err)
	}
}
