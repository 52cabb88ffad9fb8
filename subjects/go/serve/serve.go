// Package serve runs a gin service the way all subjects do: a tracer first, then a counter of requests, an access log if one is wanted,
// and recovery; `/ready` and `/metrics` beside the work; SIGTERM ends it when the last request is answered and the last span is sent.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"unladen/subjects/go/tracing"
)

// Engine is the service's engine with everything but its routes.
func Engine(tracer *tracing.Tracer, accessLog io.Writer) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if tracer.Middleware != nil {
		engine.Use(tracer.Middleware)
	}
	counts := &[6]atomic.Uint64{}
	engine.Use(func(c *gin.Context) {
		c.Next()
		counts[min(c.Writer.Status()/100, 5)].Add(1)
	})
	if accessLog != nil {
		engine.Use(access(tracer, slog.New(slog.NewJSONHandler(accessLog, nil))))
	}
	engine.Use(gin.Recovery())
	engine.GET("/ready", func(c *gin.Context) { c.String(http.StatusOK, "ready") })
	engine.GET("/metrics", func(c *gin.Context) {
		c.Header("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(c.Writer, "# TYPE requests_total counter\n")
		for class := 1; class < len(counts); class++ {
			fmt.Fprintf(c.Writer, "requests_total{class=\"%dxx\"} %d\n", class, counts[class].Load())
		}
		fmt.Fprint(c.Writer, "# TYPE tracer_lost_spans_total counter\n")
		for stage, spans := range tracer.Lost() {
			fmt.Fprintf(c.Writer, "tracer_lost_spans_total{stage=%q} %d\n", stage, spans)
		}
	})
	return engine
}

// access writes a line of JSON for every request, with its trace if it has one.
func access(tracer *tracing.Tracer, log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		started := time.Now()
		c.Next()
		attributes := []slog.Attr{
			slog.String("method", c.Request.Method),
			slog.String("path", c.Request.URL.Path),
			slog.Int("status", c.Writer.Status()),
			slog.Int("size", c.Writer.Size()),
			slog.Duration("took", time.Since(started)),
			slog.String("from", c.Request.RemoteAddr),
		}
		if tracer.TraceID != nil {
			if id := tracer.TraceID(c.Request.Context()); id != "" {
				attributes = append(attributes, slog.String("trace", id))
			}
		}
		log.LogAttrs(c.Request.Context(), slog.LevelInfo, "request", attributes...)
	}
}

// AccessLog is the file that ACCESS_LOG names; none without it.
func AccessLog() (io.Writer, error) {
	path := os.Getenv("ACCESS_LOG")
	if path == "" {
		return nil, nil
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// Run serves at the port until SIGTERM or SIGINT: on 127.0.0.1, or on the address that LISTEN names, as in a container that others call.
func Run(port string, engine http.Handler, tracer *tracing.Tracer) error {
	if tracer.Handler != nil {
		engine = tracer.Handler(engine)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(os.Getenv("LISTEN"), "127.0.0.1"), port))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	select {
	case err := <-ended:
		return err
	case <-asked.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = server.Shutdown(ctx)
	tracer.Stop(os.Stderr)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return err
}
