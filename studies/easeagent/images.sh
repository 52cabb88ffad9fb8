#!/usr/bin/env bash
# Makes the image of the Compose files: Java with the shop's jars (`make shop`). Agents are mounted, as their users do.
set -euo pipefail
cd "$(dirname "$0")"
project=easeagent
. ../parts/image.sh

jre
jars=()
for jar in ../../target/shop/*-app.jar; do jars+=("$jar=/$(basename "$jar")"); done
# Bash sees whether a port is open.
image shop "$made/jre=/jre" "$(command -v bash)=/usr/bin/bash" "${jars[@]}"
