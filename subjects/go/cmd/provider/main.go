// What the consumer calls: GET /provider takes a square root. It is never traced.
//
//	PORT  where it listens, on 127.0.0.1
package main

import (
	"log"
	"math"
	"net/http"
	"os"
	"strconv"

	"github.com/gin-gonic/gin"

	"unladen/subjects/go/serve"
	"unladen/subjects/go/tracing"
)

func main() {
	untraced := &tracing.Tracer{}
	engine := serve.Engine(untraced, nil)
	engine.GET("/provider", provide)
	if err := serve.Run(os.Getenv("PORT"), engine, untraced); err != nil {
		log.Fatal(err)
	}
}

func provide(c *gin.Context) {
	value, err := strconv.ParseFloat(c.Query("v"), 64)
	if err != nil {
		c.String(http.StatusBadRequest, "v must be a number")
		return
	}
	if root := math.Sqrt(value); math.IsNaN(root) {
		c.String(http.StatusBadRequest, "v must not be negative")
		return
	}
	c.String(http.StatusOK, "success")
}
