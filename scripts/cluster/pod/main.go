// What runs in the cluster's own pods: one static program, so that no image has to come from a registry.
//
//	pod pause                until it is asked to end; reaps what is orphaned: the sandbox of every pod
//	pod serve HOST:PORT      GET / answers "ok"; GET /burn?ms=N answers when it has used N ms of CPU
//	pod reach HOST:PORT      connects, and ends
//	pod read FILE…           prints the files, then waits until it is asked to end
package main

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "pause":
		pause()
		return nil
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 2 && args[0] == "reach":
		connection, err := net.DialTimeout("tcp", args[1], 10*time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	case len(args) > 1 && args[0] == "read":
		for _, path := range args[1:] {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Printf("%s: %s", path, text)
		}
		pause()
		return nil
	}
	return errors.New("usage: pod pause | serve HOST:PORT | reach HOST:PORT | read FILE…")
}

func pause() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for it := range signals {
		if it != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func serve(address string) error {
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	http.HandleFunc("GET /burn", func(w http.ResponseWriter, r *http.Request) {
		ms, err := strconv.Atoi(r.FormValue("ms"))
		if err == nil {
			err = burn(time.Duration(ms) * time.Millisecond)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, "burnt")
	})
	go func() {
		pause()
		os.Exit(0)
	}()
	return http.ListenAndServe(address, nil)
}

// burn uses so much CPU, by the clock of the thread: what else runs on the core does not count.
func burn(cpu time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, err := used()
	for now := start; err == nil && now-start < cpu; now, err = used() {
	}
	return err
}

func used() (time.Duration, error) {
	var usage syscall.Rusage
	const thisThread = 1 // RUSAGE_THREAD
	err := syscall.Getrusage(thisThread, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}
