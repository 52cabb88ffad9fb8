// The trace receiver of Datadog's agent by itself, as a peer of the sink: it decodes what tracers send, counts the spans, and
// throws them away. Ended by SIGTERM, it writes how many there were to a file.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/api"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/sampler"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-agent/pkg/trace/timing"
	"github.com/DataDog/datadog-go/v5/statsd"
)

// noStats throws away what tracers have counted themselves.
type noStats struct{}

func (noStats) ProcessStats(context.Context, *pb.ClientStatsPayload, string, string, string, string) error {
	return nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: datadog-receiver PORT FILE")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	conf := config.New()
	conf.ReceiverHost, conf.ReceiverPort = "127.0.0.1", port
	// Milliseconds. A payload that has waited too long for a decoder is answered like one that is accepted, and dropped.
	conf.DecoderTimeout = 60_000

	// Payloads of every version of the protocol come as the newest one.
	payloads := make(chan *api.PayloadV1, 1)
	receiver := api.NewHTTPReceiver(conf, sampler.NewDynamicConfig(), nil, payloads, noStats{},
		telemetry.NewNoopCollector(), &statsd.NoOpClient{}, timing.NoopReporter{})
	receiver.Start()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	go func() {
		<-end
		if err := receiver.Stop(); err != nil {
			log.Fatal(err)
		}
		// Every handler has handed over what it answered for.
		close(payloads)
	}()

	spans := 0
	for payload := range payloads {
		for _, chunk := range payload.TracerPayload.Chunks {
			spans += len(chunk.Spans)
		}
	}
	if err := os.WriteFile(os.Args[2], []byte(strconv.Itoa(spans)), 0o644); err != nil {
		log.Fatal(err)
	}
}
