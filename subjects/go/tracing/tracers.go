//go:build !skywalking

package tracing

import (
	"maps"
	"slices"
	"strings"
)

// The tracers of this build. SkyWalking's is a build of its own: see tracers_skywalking.go.
var tracers = map[string]func(Service) (*Tracer, error){
	"none":   none,
	"otlp":   otlp,
	"apm":    elastic,
	"zipkin": zipkin,
}

func names() string { return strings.Join(slices.Sorted(maps.Keys(tracers)), ", ") }
