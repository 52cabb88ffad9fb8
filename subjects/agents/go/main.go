// A shop's product page as JSON, for weighing agents: net/http, database/sql on pgx, three statements a request.
//
//	PORT=8080 DATABASE=127.0.0.1:5432 [POOL=8] shop
//
// POOL is how many connections to the database there are. Built without a tag it knows nothing of agents; a tag puts one in: `otel`,
// `zipkin`, `datadog`, `elastic`, `newrelic`, `sentry`, `skywalking`. No executable links what belongs to another. The tables are those of `../shop.sql`.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// name is what agents call the service, where they are not told otherwise.
const name = "shop"

// agent is what a build puts around the service. What is nil leaves it as it is.
type agent struct {
	// open is sql.Open.
	open func(driver, source string) (*sql.DB, error)
	// serve wraps the routes.
	serve func(*http.ServeMux) http.Handler
	// statement is called before a statement of a request, and what it returns after it: for agents whose users have to do so by hand.
	statement func(ctx context.Context, text string) (context.Context, func())
	// stop sends what the agent still holds.
	stop func(context.Context) error
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	agent, err := start()
	if err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	db, err := agent.open("pgx", "postgres://postgres@"+os.Getenv("DATABASE")+"/shop?sslmode=disable")
	if err != nil {
		return err
	}
	if err := fill(db); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", os.Getenv("PORT")))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(agent, db), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	asked, done := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer done()
	select {
	case err := <-ended:
		return err
	case <-asked.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	errs := []error{server.Shutdown(ctx), db.Close()}
	if agent.stop != nil {
		errs = append(errs, agent.stop(ctx))
	}
	return errors.Join(errs...)
}

// fill opens all connections before the first request, so that none is part of a request.
func fill(db *sql.DB) error {
	connections := 8
	if wanted := os.Getenv("POOL"); wanted != "" {
		var err error
		if connections, err = strconv.Atoi(wanted); err != nil || connections < 1 {
			return fmt.Errorf("POOL is `%s`; it must be a whole number from 1", wanted)
		}
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	for range connections {
		connection, err := db.Conn(context.Background())
		if err != nil {
			return fmt.Errorf("connecting to PostgreSQL at `%s` (DATABASE): %w", os.Getenv("DATABASE"), err)
		}
		defer connection.Close()
	}
	return nil
}
