#!/usr/bin/env bash
# A server that speaks MongoDB's protocol, empty, on 127.0.0.1: with-folder.sh mongodb.sh PORT. It is FerretDB, which keeps documents in
# SQLite; `make mongodb` builds it. MongoDB's own server is in no registry that this project uses.
set -euo pipefail
server=$(dirname "$0")/../../target/studies/ferretdb/ferretdb
[ -x "$server" ] || { echo "FerretDB is missing: run \`make mongodb\` first, which takes some minutes" >&2; exit 1; }
mkdir "$FOLDER/data"
exec "$server" --handler=sqlite --sqlite-url="file:$FOLDER/data/" --state-dir="$FOLDER" --listen-addr="127.0.0.1:${1:?which port}" \
  --debug-addr=- --telemetry=disable --log-level=warn
