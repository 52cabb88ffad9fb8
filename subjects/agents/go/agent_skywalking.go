//go:build skywalking

package main

import (
	"database/sql"

	// What `go build -toolexec` with the agent of subjects/skywalking-go weaves its calls into. Without the weaver it does nothing.
	_ "github.com/apache/skywalking-go"
)

// start starts nothing: the agent is in the executable, and is told what to do by its own SW_AGENT_… variables.
func start() (*agent, error) { return &agent{open: sql.Open}, nil }
