#!/usr/bin/env bash
# A Kafka of one server, empty, that listens on 127.0.0.1 and makes a topic of three partitions when somebody asks for one:
# with-folder.sh kafka.sh PORT CONTROLLER_PORT. `make governed` fetches it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
jars="$here/../../target/governed/broker/*"
port=${1:?which port}
controller=${2:?which port for its controller}
cat >"$FOLDER/server.properties" <<SETTINGS
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$FOLDER/data
num.partitions=3
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
SETTINGS
quick=(-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true)
# Sixteen bytes in base64: `unladen-governed`.
java "${quick[@]}" -cp "$jars" kafka.tools.StorageTool format -t dW5sYWRlbi1nb3Zlcm5lZA -c "$FOLDER/server.properties" \
  >"$FOLDER/format.log" 2>&1 || { cat "$FOLDER/format.log" >&2; exit 1; }
exec java -Xms256m -Xmx256m -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true -cp "$jars" kafka.Kafka "$FOLDER/server.properties"
