//go:build !skywalking

package main

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"unladen/subjects/go/serve"
	"unladen/subjects/go/tracing"
)

// fakeRedis answers every command, one line each, as if it were old: HELLO is unknown to it.
func fakeRedis(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				for lines := bufio.NewScanner(connection); lines.Scan(); {
					switch strings.ToLower(lines.Text()) {
					case "ping":
						io.WriteString(connection, "+PONG\r\n")
					case "hello", "client":
						io.WriteString(connection, "-ERR unknown command\r\n")
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// fakeMySQL answers every query with one row of one column: 1.
type fakeMySQL struct{ answered bool }

func (f *fakeMySQL) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fakeMySQL) Driver() driver.Driver                        { return nil }
func (f *fakeMySQL) Prepare(string) (driver.Stmt, error)          { return nil, io.ErrUnexpectedEOF }
func (f *fakeMySQL) Begin() (driver.Tx, error)                    { return nil, io.ErrUnexpectedEOF }
func (f *fakeMySQL) Close() error                                 { return nil }
func (f *fakeMySQL) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &fakeRows{}, nil
}

type fakeRows struct{ done bool }

func (*fakeRows) Columns() []string { return []string{"1"} }
func (*fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(into []driver.Value) error {
	if r.done {
		return io.EOF
	}
	r.done = true
	into[0] = int64(1)
	return nil
}

func dialector() gorm.Dialector {
	return mysql.New(mysql.Config{Conn: sql.OpenDB(&fakeMySQL{}), SkipInitializeWithVersion: true})
}

func TestEveryRouteMakesAsManySpansAsItHasLetters(t *testing.T) {
	for _, test := range []struct {
		path  string
		spans []string
	}{
		{"/ping/G", []string{"GET /ping/G"}},
		{"/ping/GR", []string{"ping", "GET /ping/GR"}},
		{"/ping/GM", []string{"gorm.Row", "GET /ping/GM"}},
		{"/ping/GRM", []string{"ping", "gorm.Row", "GET /ping/GRM"}},
		{"/ready", nil},
		{"/metrics", nil},
	} {
		t.Run(test.path, func(t *testing.T) {
			tracer, spans := tracing.InMemory(tracing.Service{Name: "ping"})
			stores, err := open(tracer, fakeRedis(t), dialector())
			if err != nil {
				t.Fatal(err)
			}
			engine := serve.Engine(tracer, nil)
			stores.routes(engine)
			request := httptest.NewRequest(http.MethodGet, test.path, nil)
			const parent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
			request.Header.Set("traceparent", parent)
			answer := httptest.NewRecorder()
			engine.ServeHTTP(answer, request)
			if answer.Code != http.StatusOK {
				t.Fatalf("%d: %s", answer.Code, answer.Body)
			}
			made := spans()
			if len(made) != len(test.spans) {
				t.Fatalf("%d spans instead of %v: %v", len(made), test.spans, made)
			}
			for i, name := range test.spans {
				if made[i].Name != name || made[i].Trace != parent[3:35] {
					t.Errorf("span %d is %+v, it should be `%s` of the caller's trace", i, made[i], name)
				}
			}
		})
	}
}
