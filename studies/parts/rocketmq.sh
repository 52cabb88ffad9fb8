#!/usr/bin/env bash
# A RocketMQ, empty, on 127.0.0.1: with-folder.sh rocketmq.sh NAME_SERVER_PORT BROKER_PORT. Clients are told of the name server. The broker
# listens on the port two below its own as well, for those in a hurry; nothing can be said about that. For replicas it has no port: see
# NoReplicas.java. `make governed` builds and fetches it.
set -euo pipefail
jars="$(cd "$(dirname "$0")" && pwd)/../../target/governed/rocketmq/*"
names=${1:?which port for the name server}
port=${2:?which port for the broker}
mkdir "$FOLDER/home"
cat >"$FOLDER/names.conf" <<SETTINGS
listenPort=$names
bindAddress=127.0.0.1
SETTINGS
cat >"$FOLDER/broker.conf" <<SETTINGS
brokerName=broker
brokerId=0
namesrvAddr=127.0.0.1:$names
brokerIP1=127.0.0.1
listenPort=$port
bindAddress=127.0.0.1
storePathRootDir=$FOLDER/store
mappedFileSizeCommitLog=67108864
timerWheelEnable=false
# It refuses messages that had to wait for a fifth of a second, as they may on a busy machine.
waitTimeMillsInSendQueue=10000
# And it refuses them when the disk is nine tenths full, however much that leaves.
diskMaxUsedSpaceRatio=99
SETTINGS
options=(-XX:+UseSerialGC -Djava.net.preferIPv4Stack=true "-Duser.home=$FOLDER/home" "-Drocketmq.home.dir=$FOLDER/home"
  -Drocketmq.broker.diskSpaceWarningLevelRatio=0.99 -Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99
  --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED --add-exports=java.base/sun.nio.ch=ALL-UNNAMED
  --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED)
java -Xmx64m "${options[@]}" -cp "$jars" org.apache.rocketmq.namesrv.NamesrvStartup -c "$FOLDER/names.conf" >"$FOLDER/names.log" 2>&1 &
server=$!
java -Xms256m -Xmx256m -XX:MaxDirectMemorySize=256m "${options[@]}" -cp "$jars" org.apache.rocketmq.broker.BrokerStartup -c "$FOLDER/broker.conf" &
broker=$!
trap : TERM INT
# If either ends, so does the other; and if asked in a friendly way the broker takes longer than anybody waits.
wait -n || true
kill -KILL "$broker" "$server" 2>/dev/null || true
wait || true
