//go:build !skywalking

package tracing

import (
	"maps"
	"slices"
	"strings"
)

// The tracers of this build; each adds itself. Without a tag of ours all are in it. The tag `otel` or `elastic` leaves in that one alone,
// and `bare` none, so that an executable is as large as that of a service which has only this tracer. SkyWalking's is a build of its own:
// see tracers_skywalking.go.
var tracers = map[string]func(Service) (*Tracer, error){"none": none}

func names() string { return strings.Join(slices.Sorted(maps.Keys(tracers)), ", ") }
