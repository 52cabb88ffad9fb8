// Package goredis tells the agent where to weave its calls into github.com/redis/go-redis/v9.
package goredis

import (
	"embed"

	"github.com/apache/skywalking-go/plugins/core/instrument"
)

//skywalking:nocopy

//go:embed *
var files embed.FS

// Instrument is the plugin.
type Instrument struct{}

// NewInstrument makes it.
func NewInstrument() *Instrument { return &Instrument{} }

// Name of the plugin.
func (*Instrument) Name() string { return "goredis" }

// BasePackage is the package that it changes.
func (*Instrument) BasePackage() string { return "github.com/redis/go-redis/v9" }

// VersionChecker takes every version: subjects/go/go.mod pins the one that is used.
func (*Instrument) VersionChecker(string) bool { return true }

// FS holds the files that are copied into the package.
func (*Instrument) FS() *embed.FS { return &files }

// Points are where it changes it.
func (*Instrument) Points() []*instrument.Point {
	return []*instrument.Point{{
		PackagePath: "",
		PackageName: "redis",
		At:          instrument.NewMethodEnhance("*Client", "Process"),
		Interceptor: "ProcessInterceptor",
	}}
}
