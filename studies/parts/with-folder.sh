#!/usr/bin/env bash
# Runs a command with a new folder in FOLDER, which goes when the command has ended: with-folder.sh COMMAND…. SIGTERM is passed on.
set -euo pipefail
FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/unladen-study.XXXXXX")
export FOLDER
trap 'rm -rf "$FOLDER"' EXIT
"$@" &
child=$!
trap 'kill "$child" 2>/dev/null || true' TERM INT
status=0
wait "$child" || status=$?
# A signal ends the first wait; the command is still at it.
while kill -0 "$child" 2>/dev/null; do wait "$child" || status=$?; done
exit "$status"
