package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// fake is a database with one product, 7; every other number is none.
type fake struct{}

func (fake) Open(string) (driver.Conn, error)         { return fake{}, nil }
func (fake) Prepare(string) (driver.Stmt, error)      { return nil, io.ErrUnexpectedEOF }
func (fake) Begin() (driver.Tx, error)                { return nil, io.ErrUnexpectedEOF }
func (fake) Close() error                             { return nil }
func (fake) ResetSession(context.Context) error       { return nil }
func (fake) CheckNamedValue(*driver.NamedValue) error { return nil }

func (fake) QueryContext(_ context.Context, text string, values []driver.NamedValue) (driver.Rows, error) {
	if values[0].Value != 7 {
		return &rows{columns: make([]string, 3)}, nil
	}
	switch _, rest, _ := strings.Cut(text, " FROM "); strings.Fields(rest)[0] {
	case "product":
		return &rows{make([]string, 3), [][]driver.Value{{int64(7), "product 7", int64(149)}}}, nil
	case "stock":
		return &rows{make([]string, 2), [][]driver.Value{{"north", int64(11)}, {"west", int64(0)}}}, nil
	default:
		return &rows{make([]string, 2), [][]driver.Value{{int64(5), "review 506"}, {int64(2), "review 6"}}}, nil
	}
}

type rows struct {
	columns []string
	left    [][]driver.Value
}

func (r *rows) Columns() []string { return r.columns }
func (*rows) Close() error        { return nil }
func (r *rows) Next(into []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(into, r.left[0])
	r.left = r.left[1:]
	return nil
}

func init() { sql.Register("fake", fake{}) }

// answer is that of the service with this agent around it to a request of a trace.
func answer(t *testing.T, agent *agent, path string) *httptest.ResponseRecorder {
	t.Helper()
	db, err := agent.open("fake", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// The connection is opened before the request, as in the service.
	connection, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("traceparent", "00-"+trace+"-0123456789abcdef-01")
	request.Header.Set("sentry-trace", trace+"-0123456789abcdef-1")
	recorder := httptest.NewRecorder()
	handler(agent, db).ServeHTTP(recorder, request)
	return recorder
}

const trace = "0123456789abcdef0123456789abcdef"

func TestAProductIsShownWithItsStockAndItsLatestReviews(t *testing.T) {
	agent, _ := recorded(t)
	shown := answer(t, agent, "/products/7")
	const wanted = `{"id":7,"name":"product 7","cents":149,"stock":{"north":11,"west":0},` +
		`"reviews":[{"stars":5,"words":"review 506"},{"stars":2,"words":"review 6"}]}` + "\n"
	if shown.Code != http.StatusOK || shown.Body.String() != wanted || shown.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v\n%s\nwanted:\n%s", shown.Code, shown.Header(), shown.Body, wanted)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	agent, _ := recorded(t)
	for _, path := range []string{"/products/8", "/products/seven", "/products/", "/"} {
		if shown := answer(t, agent, path); shown.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, shown.Code)
		}
	}
}

// The study's README says how many spans each agent makes of a request, and unladen tells by their trace which request they are of.
func TestARequestMakesTheseSpansOfItsTrace(t *testing.T) {
	agent, spans := recorded(t)
	answer(t, agent, "/products/7")
	made := spans()
	var names []string
	for _, span := range made {
		names = append(names, span.name)
		if !strings.HasSuffix(trace, span.trace) || len(span.trace) < 16 {
			t.Errorf("`%s` is of trace %s, the request of %s", span.name, span.trace, trace)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, spansOfARequest) {
		t.Errorf("spans %q\nwanted %q", names, spansOfARequest)
	}
}

// made is a span that was made in a test.
type made struct{ trace, name string }
