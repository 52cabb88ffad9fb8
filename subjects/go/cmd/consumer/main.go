// The subject of studies/skywalking-go: GET /consumer burns CPU time and calls the provider, three times, one after the other.
//
//	PORT      where it listens, on 127.0.0.1
//	PROVIDER  URL of the provider: http://127.0.0.1:8081/provider
//	BURN      how many logarithms are summed before each call; 35,000 without it
//	TRACER    none, otlp, apm, zipkin; in the build with the tag skywalking: skywalking
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"unladen/subjects/go/serve"
	"unladen/subjects/go/tracing"
)

// calls per request.
const calls = 3

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	port := os.Getenv("PORT")
	burn := 35_000
	if text := os.Getenv("BURN"); text != "" {
		var err error
		if burn, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("BURN is `%s`; it must be a whole number", text)
		}
	}
	tracer, err := tracing.Start(tracing.Service{Name: "consumer", Address: "127.0.0.1:" + port})
	if err != nil {
		return err
	}
	engine := serve.Engine(tracer, nil)
	engine.GET("/consumer", consume(client(tracer), os.Getenv("PROVIDER"), burn))
	return serve.Run(port, engine, tracer)
}

func client(tracer *tracing.Tracer) *http.Client {
	var transport http.RoundTripper = &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 2 * time.Minute}).DialContext,
		MaxIdleConnsPerHost: math.MaxInt,
		IdleConnTimeout:     90 * time.Second,
	}
	if tracer.Transport != nil {
		transport = tracer.Transport(transport)
	}
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func consume(client *http.Client, provider string, burn int) gin.HandlerFunc {
	return func(c *gin.Context) {
		for range calls {
			if err := call(c, client, provider+"?v="+strconv.FormatFloat(logarithms(burn), 'f', -1, 64)); err != nil {
				c.String(http.StatusInternalServerError, err.Error())
				return
			}
		}
		c.String(http.StatusOK, "success")
	}
}

func call(c *gin.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(c.Request.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answers %s", response.Status)
	}
	return nil
}

// logarithms sums so many of them, of numbers so large that none is like another.
func logarithms(count int) float64 {
	sum := 0.0
	for i := range count {
		sum += math.Log(math.MaxFloat64 / float64(i+1))
	}
	return sum
}
