#!/usr/bin/env bash
# Tests and builds the service, bare and with each agent: build.sh test, or build.sh OUT; the executables are OUT/bare, OUT/otel and so on.
set -euo pipefail
out=$(realpath -m "${1:?test, or the folder for the executables}")
cd "$(dirname "$0")"
for agent in bare otel zipkin datadog elastic newrelic sentry skywalking; do
  if [ "$1" = test ]; then
    # With the flags of the build, as Go would compile all of it twice.
    go test -trimpath -vet=all -tags "$agent" ./...
  elif [ "$agent" = skywalking ]; then
    PLUGINS="server sql" ../../skywalking-go/build.sh . "$out" "$PWD"
    mv "$out/skywalking-go" "$out/skywalking"
  else
    go build -trimpath -buildvcs=false -tags "$agent" -o "$out/$agent" .
  fi
done
