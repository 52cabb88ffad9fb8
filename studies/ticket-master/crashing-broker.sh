#!/usr/bin/env bash
# A broker that is killed (-9) while customers are at it, and started again on the same folder: crashing-broker.sh TIMES BYTES COMMAND….
# It is killed when so many bytes of reservations are stored, again after twice as many, and so on. FOLDER is where they are.
set -euo pipefail
times=${1:?how often}
bytes=${2:?after how many bytes}
shift 2
broker=
trap 'kill "$broker" 2>/dev/null && wait "$broker"; exit' TERM INT

start() {
  "$@" &
  broker=$!
}

stored() {
  cat "$FOLDER"/data/create-reservation-*/*.log 2>/dev/null | wc -c
}

start "$@"
for ((time = 1; time <= times; time++)); do
  until (($(stored) >= time * bytes)); do
    kill -0 "$broker" 2>/dev/null || { echo "the broker ended by itself" >&2; exit 1; }
    sleep 0.05
  done
  kill -9 "$broker"
  wait "$broker" || true
  echo "killed the broker, time $time, at $(stored) bytes of reservations"
  start "$@"
done
# A signal ends the wait; the trap does the rest.
wait "$broker"
