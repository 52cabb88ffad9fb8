package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strconv"
)

// latest is how many reviews a page shows.
const latest = 5

// page is what is shown of a product: it, where it is in stock, and its latest reviews.
type page struct {
	ID      int            `json:"id"`
	Name    string         `json:"name"`
	Cents   int            `json:"cents"`
	Stock   map[string]int `json:"stock"`
	Reviews []review       `json:"reviews"`
}

// review is what a buyer says of a product.
type review struct {
	Stars int    `json:"stars"`
	Words string `json:"words"`
}

// shop answers requests.
type shop struct {
	db        *sql.DB
	statement func(ctx context.Context, text string) (context.Context, func())
}

// handler is the service with the agent around it.
func handler(agent *agent, db *sql.DB) http.Handler {
	shop := &shop{db, agent.statement}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /products/{number}", shop.product)
	if agent.serve == nil {
		return mux
	}
	return agent.serve(mux)
}

func (s *shop) product(w http.ResponseWriter, request *http.Request) {
	number, err := strconv.Atoi(request.PathValue("number"))
	if err != nil {
		http.NotFound(w, request)
		return
	}
	found, err := s.find(request.Context(), number)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case found == nil:
		http.NotFound(w, request)
	default:
		w.Header().Set("Content-Type", "application/json")
		// An error here is one of the connection: there is nobody to tell.
		_ = json.NewEncoder(w).Encode(found)
	}
}

// find is the page of a product; nil, if there is none.
func (s *shop) find(ctx context.Context, number int) (*page, error) {
	var found *page
	err := s.rows(ctx, func(rows *sql.Rows) error {
		found = &page{Stock: map[string]int{}, Reviews: []review{}}
		return rows.Scan(&found.ID, &found.Name, &found.Cents)
	}, "SELECT id, name, cents FROM product WHERE id = $1", number)
	if err != nil || found == nil {
		return nil, err
	}
	err = s.rows(ctx, func(rows *sql.Rows) error {
		var place string
		var pieces int
		err := rows.Scan(&place, &pieces)
		found.Stock[place] = pieces
		return err
	}, "SELECT place, pieces FROM stock WHERE product = $1 ORDER BY place", number)
	if err != nil {
		return nil, err
	}
	err = s.rows(ctx, func(rows *sql.Rows) error {
		var one review
		err := rows.Scan(&one.Stars, &one.Words)
		found.Reviews = append(found.Reviews, one)
		return err
	}, "SELECT stars, words FROM review WHERE product = $1 ORDER BY id DESC LIMIT $2", number, latest)
	return found, err
}

// rows asks the database and hands over each row of its answer.
func (s *shop) rows(ctx context.Context, each func(*sql.Rows) error, text string, values ...any) error {
	if s.statement != nil {
		inner, end := s.statement(ctx, text)
		defer end()
		ctx = inner
	}
	rows, err := s.db.QueryContext(ctx, text, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
