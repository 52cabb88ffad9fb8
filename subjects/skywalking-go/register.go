//go:build ignore

// What takes the place of the agent's own list of plugins, of which none is on the Go proxy: see build.sh.
package plugins

import (
	"github.com/apache/skywalking-go/plugins/core/instrument"

	"unladen/subjects/skywalking-go/gin"
	"unladen/subjects/skywalking-go/goredis"
	"unladen/subjects/skywalking-go/gorm"
	"unladen/subjects/skywalking-go/http"
)

var instruments = []instrument.Instrument{
	gin.NewInstrument(), http.NewInstrument(), goredis.NewInstrument(), gorm.NewInstrument(),
}
