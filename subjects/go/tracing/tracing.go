// Package tracing gives a service one of several tracers, chosen by name, so that the same source runs bare and traced by each.
// Every tracer tells how many spans it has lost and at which stage, as far as its SDK lets one know.
package tracing

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// A Tracer instruments the parts of a service. Parts that are nil stay as they are.
type Tracer struct {
	// Handler wraps the whole service.
	Handler func(http.Handler) http.Handler
	// Middleware goes before all others.
	Middleware gin.HandlerFunc
	// Transport wraps what the service calls others with.
	Transport func(http.RoundTripper) http.RoundTripper
	// Redis hooks into a client.
	Redis func(*redis.Client) error
	// Dialector opens MySQL for gorm.
	Dialector func(dsn string) gorm.Dialector
	// Gorm hooks into an open database.
	Gorm func(*gorm.DB) error
	// TraceID is the trace of a request, or nothing.
	TraceID func(context.Context) string

	lost func() map[string]uint64
	stop func(context.Context) error
	once sync.Once
}

// Service and address by which tracers name the process.
type Service struct {
	Name    string
	Address string
}

// Start makes the tracer that TRACER names, for a service of that name.
func Start(service Service) (*Tracer, error) {
	name := setting("TRACER", "none")
	start, isKnown := tracers[name]
	if !isKnown {
		return nil, fmt.Errorf("there is no tracer `%s` in this build; set TRACER to one of its tracers: %s", name, names())
	}
	tracer, err := start(service)
	if err != nil {
		return nil, fmt.Errorf("starting the tracer `%s`: %w", name, err)
	}
	return tracer, nil
}

// none traces nothing.
func none(Service) (*Tracer, error) { return &Tracer{}, nil }

// Open opens MySQL as the tracer wants it.
func (t *Tracer) Open(dsn string) gorm.Dialector {
	if t.Dialector != nil {
		return t.Dialector(dsn)
	}
	return mysql.Open(dsn)
}

// Lost is how many spans were lost at each stage so far, as far as the SDK tells.
func (t *Tracer) Lost() map[string]uint64 {
	if t.lost == nil {
		return nil
	}
	return t.lost()
}

// Stop sends what the tracer still holds and says on `out` what it has lost.
func (t *Tracer) Stop(out io.Writer) {
	t.once.Do(func() {
		if t.stop != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
			defer cancel()
			if err := t.stop(ctx); err != nil {
				fmt.Fprintf(out, "stopping the tracer: %v\n", err)
			}
		}
		for stage, spans := range t.Lost() {
			fmt.Fprintf(out, "tracer lost %d spans at %s\n", spans, stage)
		}
	})
}

// setting is an environment variable, or what stands in for it.
func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// number is the same for a whole number.
func number(name string, otherwise int) (int, error) {
	value, isSet := os.LookupEnv(name)
	if !isSet || value == "" {
		return otherwise, nil
	}
	read, err := strconv.Atoi(value)
	if err != nil || read < 1 {
		return 0, fmt.Errorf("%s is `%s`; it must be a whole number from 1", name, value)
	}
	return read, nil
}

// isTraced tells the work from the questions that others ask of the service: whether it is ready, and its metrics.
func isTraced(path string) bool { return path != "/ready" && path != "/metrics" }
