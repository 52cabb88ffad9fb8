#!/usr/bin/env bash
# A ZooKeeper that has only the rules below a folder and listens on 127.0.0.1: with-folder.sh registry.sh PORT RULES. `make governed`
# builds it. Nothing of it is to outlive a power cut, so it does not wait for the disk.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec java -Xmx64m -XX:+UseSerialGC -Dzookeeper.forceSync=no -Dzookeeper.preAllocSize=1024 \
  -jar "$here/../../target/governed/registry-app.jar" serve "${1:?which port}" "$FOLDER/data" "${2:?which rules}"
