// The subject of studies/tracing-benchmark: an API server whose answers cost nothing, nothing and Redis, nothing and MySQL, or all three.
//
//	PORT        where it listens
//	LISTEN      address on which it does; 127.0.0.1 without it
//	REDIS       host:port
//	MYSQL       data source name: root@tcp(127.0.0.1:3306)/mysql
//	TRACER      none, otlp, apm, zipkin; in the build with the tag skywalking: skywalking
//	ACCESS_LOG  file for a line of JSON per request; none without it
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"unladen/subjects/go/serve"
	"unladen/subjects/go/tracing"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	port := os.Getenv("PORT")
	tracer, err := tracing.Start(tracing.Service{Name: "ping", Address: "127.0.0.1:" + port})
	if err != nil {
		return err
	}
	accessLog, err := serve.AccessLog()
	if err != nil {
		return err
	}
	stores, err := open(tracer, os.Getenv("REDIS"), tracer.Open(os.Getenv("MYSQL")))
	if err != nil {
		return err
	}
	engine := serve.Engine(tracer, accessLog)
	stores.routes(engine)
	return serve.Run(port, engine, tracer)
}

// stores is what the answers cost.
type stores struct {
	redis *redis.Client
	mysql *gorm.DB
}

func open(tracer *tracing.Tracer, address string, dialector gorm.Dialector) (*stores, error) {
	client := redis.NewClient(&redis.Options{Addr: address, PoolSize: connections})
	if err := connect(client); err != nil {
		return nil, fmt.Errorf("connecting to Redis: %w", err)
	}
	if tracer.Redis != nil {
		if err := tracer.Redis(client); err != nil {
			return nil, fmt.Errorf("tracing Redis: %w", err)
		}
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, fmt.Errorf("opening MySQL: %w", err)
	}
	if tracer.Gorm != nil {
		if err := tracer.Gorm(db); err != nil {
			return nil, fmt.Errorf("tracing MySQL: %w", err)
		}
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxIdleConns(idle)
	pool.SetMaxOpenConns(connections)
	// As with Redis: tracers make spans of connecting, in whichever request it happens to be.
	for range idle {
		connection, err := pool.Conn(context.Background())
		if err != nil {
			return nil, fmt.Errorf("connecting to MySQL: %w", err)
		}
		defer connection.Close()
	}
	return &stores{client, db}, nil
}

// Connections to each store at most, and those to MySQL that are kept when nothing is asked.
const (
	connections = 32
	idle        = 8
)

// connect opens all connections to Redis before the tracer sees them: their greetings are no part of any request's work.
func connect(client *redis.Client) error {
	for range connections {
		connection := client.Conn()
		defer connection.Close()
		if err := connection.Ping(context.Background()).Err(); err != nil {
			return err
		}
	}
	return nil
}

// routes are named after what they ask: Gin itself, Redis, MySQL.
func (s *stores) routes(engine *gin.Engine) {
	answer := func(asks ...func(*gin.Context) error) gin.HandlerFunc {
		return func(c *gin.Context) {
			for _, ask := range asks {
				if err := ask(c); err != nil {
					c.String(http.StatusInternalServerError, err.Error())
					return
				}
			}
			c.String(http.StatusOK, "pong")
		}
	}
	engine.GET("/ping/G", answer())
	engine.GET("/ping/GR", answer(s.askRedis))
	engine.GET("/ping/GM", answer(s.askMySQL))
	engine.GET("/ping/GRM", answer(s.askRedis, s.askMySQL))
}

func (s *stores) askRedis(c *gin.Context) error { return s.redis.Ping(c.Request.Context()).Err() }

func (s *stores) askMySQL(c *gin.Context) error {
	var one int
	return s.mysql.WithContext(c.Request.Context()).Raw("SELECT 1").Scan(&one).Error
}
