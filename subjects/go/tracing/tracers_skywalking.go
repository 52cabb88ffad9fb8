//go:build skywalking

package tracing

// What `go build -toolexec` with the agent of subjects/skywalking-go weaves its calls into. Without the agent the import does nothing.
import _ "github.com/apache/skywalking-go"

// The agent is in the executable: there is nothing to start, and it is told what to do by its own SW_AGENT_… variables.
var tracers = map[string]func(Service) (*Tracer, error){"skywalking": none}

func names() string { return "skywalking" }
