// Package sql tells the agent where to weave its calls into database/sql.
package sql

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
func (*Instrument) Name() string { return "sql" }

// BasePackage is the package that it changes.
func (*Instrument) BasePackage() string { return "database/sql" }

// VersionChecker takes every version: it is that of the toolchain.
func (*Instrument) VersionChecker(string) bool { return true }

// FS holds the files that are copied into the package.
func (*Instrument) FS() *embed.FS { return &files }

// Points are where it changes it.
func (*Instrument) Points() []*instrument.Point {
	return []*instrument.Point{{
		PackagePath: "",
		PackageName: "sql",
		At:          instrument.NewMethodEnhance("*DB", "QueryContext"),
		Interceptor: "QueryInterceptor",
	}}
}
