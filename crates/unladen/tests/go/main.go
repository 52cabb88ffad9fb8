// A service that shows goroutines, heap and collections in the Prometheus text format: what the tests ask.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime"
)

var sink []byte

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address")
	goroutines := flag.Int("goroutines", 0, "goroutines that only wait")
	ballast := flag.Int("ballast-mib", 0, "memory that is kept")
	flag.Parse()
	kept := make([]byte, *ballast<<20)
	for at := range kept {
		kept[at] = byte(at)
	}
	for range *goroutines {
		go func() { select {} }()
	}
	http.HandleFunc("/work", func(answer http.ResponseWriter, _ *http.Request) {
		sink = make([]byte, 64<<10)
		fmt.Fprintln(answer, "done")
	})
	http.HandleFunc("/metrics", func(answer http.ResponseWriter, _ *http.Request) {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		fmt.Fprintf(answer, "# TYPE go_goroutines gauge\ngo_goroutines %d\n", runtime.NumGoroutine())
		fmt.Fprintf(answer, "# TYPE go_memstats_heap_inuse_bytes gauge\ngo_memstats_heap_inuse_bytes %d\n", memory.HeapInuse)
		fmt.Fprintf(answer, "# TYPE go_memstats_alloc_bytes_total counter\ngo_memstats_alloc_bytes_total %d\n", memory.TotalAlloc)
		fmt.Fprintf(answer, "# TYPE go_gc_duration_seconds summary\ngo_gc_duration_seconds_sum %g\ngo_gc_duration_seconds_count %d\n",
			float64(memory.PauseTotalNs)/1e9, memory.NumGC)
		fmt.Fprintf(answer, "# TYPE kept_bytes gauge\nkept_bytes{of=\"ballast\"} %d\nkept_bytes{of=\"nothing\"} 0\n", len(kept))
	})
	log.Fatal(http.ListenAndServe(*address, nil))
}
