#!/usr/bin/env bash
# SkyWalking's OAP server: with-folder.sh oap.sh LIBS SETTINGS, ports and storage in the environment, see SETTINGS/application.yml.
set -euo pipefail
libs=$(cd "${1:?where the jars are}" && pwd)
# Folders that it looks into even if nothing is in them, which a repository cannot hold.
cp -r "${2:?where its settings are}" "$FOLDER/settings"
cd "$FOLDER/settings"
mkdir -p openapi-definitions lal log-mal-rules meter-analyzer-config otel-rules envoy-metrics-rules zabbix-rules telegraf-rules
exec java -Xms1g -Xmx2g -Djava.io.tmpdir="$FOLDER" -cp "$FOLDER/settings:$libs/*" org.apache.skywalking.oap.server.starter.OAPServerStartUp
