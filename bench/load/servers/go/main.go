// A server by net/http that counts its requests; see ../README.md.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
)

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: server HTTP1-PORT HTTP2-PORT TLS-PORT FOLDER")
	}
	var count atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		fmt.Fprint(w, "hello")
	})
	mux.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, count.Load()) })

	// Without a dependency since Go 1.24: HTTP/2 in the clear is one of the protocols.
	clear := new(http.Protocols)
	clear.SetHTTP1(true)
	clear.SetUnencryptedHTTP2(true)
	secure := new(http.Protocols)
	secure.SetHTTP1(true)
	secure.SetHTTP2(true)

	failed := make(chan error)
	for _, port := range os.Args[1:3] {
		server := &http.Server{Addr: "127.0.0.1:" + port, Handler: mux, Protocols: clear}
		go func() { failed <- server.ListenAndServe() }()
	}
	folder := os.Args[4]
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[3], Handler: mux, Protocols: secure}
	go func() {
		failed <- server.ListenAndServeTLS(filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"))
	}()
	log.Fatal(<-failed)
}
