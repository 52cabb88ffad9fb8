#!/usr/bin/env bash
# An Elasticsearch that is empty and listens on 127.0.0.1, or on LISTEN: with-folder.sh elasticsearch.sh HOME PORT. Its heap is 1 GB, as published.
set -euo pipefail
home=$(cd "${1:?where it was unpacked}" && pwd)
port=${2:?which port}
cp -r "$home/config" "$FOLDER/config"
cat > "$FOLDER/config/elasticsearch.yml" <<YAML
discovery.type: single-node
xpack.security.enabled: false
network.host: ${LISTEN:-127.0.0.1}
http.port: $port
transport.port: 0
path.data: $FOLDER/data
path.logs: $FOLDER/logs
# Else it writes nothing when the disk is nine tenths full, however much that leaves.
cluster.routing.allocation.disk.threshold_enabled: false
YAML
export ES_PATH_CONF="$FOLDER/config" ES_JAVA_OPTS="-Xms1g -Xmx1g" ES_TMPDIR="$FOLDER"
ES_JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
export ES_JAVA_HOME
# It refuses to run as root; in a user namespace it has another number, and root's files all the same.
[ "$(id -u)" != 0 ] || exec unshare --user --map-user=1000 --map-group=1000 "$home/bin/elasticsearch"
exec "$home/bin/elasticsearch"
