#!/usr/bin/env bash
# Whether two ways of counting agree: sends so many requests through the traced server to a backend, stops the server, so that it has sent
# everything, and prints what the backend's counter says (what the study asks) and what second-way.py finds span by span.
#   agree.sh jaeger|zipkin [REQUESTS]      needs the parts (make studies-deps), MariaDB, Redis and unladen's executable
set -euo pipefail
cd "$(dirname "$0")"
backend=${1:?jaeger or zipkin}
requests=${2:-2000}
parts=../../target/studies
unladen=${UNLADEN:-../../target/release/unladen}
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
up() { for _ in $(seq 240); do curl -sf -o /dev/null "$1" && return; sleep 0.5; done; echo "nobody answers at $1" >&2; exit 1; }
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait' EXIT

maria=$(port) redis=$(port) ping=$(port) in=$(port) query=$(port) metrics=$(port)
../parts/with-folder.sh ../parts/mariadb.sh "$maria" >/dev/null 2>&1 & started+=($!)
redis-server --bind 127.0.0.1 --port "$redis" --save "" >/dev/null & started+=($!)
case $backend in
  jaeger)
    OTLP_PORT=$in QUERY_PORT=$query METRICS_PORT=$metrics "$parts/jaeger/jaeger" --config jaeger/memory.yaml 2>/dev/null & started+=($!)
    up "http://127.0.0.1:$query/api/services"
    export TRACER=otlp OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$in"
    counter() { curl -s "http://127.0.0.1:$metrics/metrics" | awk '/^otelcol_exporter_sent_spans_total/ {n += $NF} END {print n + 0}'; }
    second() { ./second-way.py jaeger "http://127.0.0.1:$query" ping; } ;;
  zipkin)
    QUERY_PORT=$query STORAGE_TYPE=mem MEM_MAX_SPANS=3000000 java -Xmx2g -jar "$parts"/zipkin/*.jar >/dev/null & started+=($!)
    up "http://127.0.0.1:$query/health"
    export TRACER=zipkin ZIPKIN_URL="http://127.0.0.1:$query/api/v2/spans"
    counter() { curl -s "http://127.0.0.1:$query/prometheus" | awk '/^zipkin_collector_spans_total/ {n += $NF} END {print n + 0}'; }
    second() { ./second-way.py zipkin "http://127.0.0.1:$query" ping; } ;;
esac
for _ in $(seq 120); do (exec 3<>"/dev/tcp/127.0.0.1/$maria") 2>/dev/null && break; sleep 0.5; done
PORT=$ping REDIS="127.0.0.1:$redis" MYSQL="root@tcp(127.0.0.1:$maria)/mysql?interpolateParams=true" ../../target/subjects/ping &
server=$!
started+=("$server")
up "http://127.0.0.1:$ping/ready"
"$unladen" load "http://127.0.0.1:$ping/ping/GRM" --rate 500 --duration "$((requests / 500))s" >/dev/null
kill "$server" && wait "$server" || true
sleep 3
echo "$backend: counter $(counter), one by one and distinct: $(second)"
