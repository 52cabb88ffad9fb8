// A server by net/http: some SHA-256 and a little JSON for every request.
//
//	server PORT [EXTRA]      EXTRA: rounds of SHA-256 more than its own
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
)

// Rounds of 1 KiB each for a request.
const own = 100

type item struct {
	ID   int               `json:"id"`
	Name string            `json:"name"`
	Tags map[string]string `json:"tags"`
}

func work(rounds int) (sum [sha256.Size]byte) {
	var data [1024]byte
	for round := range rounds {
		data[0] = byte(round)
		sum = sha256.Sum256(data[:])
		copy(data[1:], sum[:])
	}
	return sum
}

// Keeps the extra work from being left out.
var kept [sha256.Size]byte

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: server PORT [EXTRA]")
	}
	extra := 0
	if len(os.Args) > 2 {
		extra, _ = strconv.Atoi(os.Args[2])
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		sum := work(own)
		more := work(extra)
		if more == sum {
			kept = more
		}
		items := make([]item, 8)
		for i := range items {
			items[i] = item{i, fmt.Sprintf("%x", sum[:8]), map[string]string{"a": "b", "c": "d"}}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(items)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
