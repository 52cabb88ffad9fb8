#!/usr/bin/env bash
# Makes the images of compose.yaml from what is on this machine: Debian's packages (`make deps`), the server under test and what
# `make studies-deps` fetches.
#   images.sh [NAME…]      all of them without a name
set -euo pipefail
cd "$(dirname "$0")"
target=$(cd ../../target && pwd)
parts=$target/studies
project=tracing-benchmark
. ../parts/image.sh

# What the scripts in studies/parts and Elasticsearch's own call.
tools=(../parts/with-folder.sh=/with-folder.sh "$(command -v bash)=/bin/bash")
for tool in bash env basename cat cp dirname grep id ls mkdir mktemp readlink rm sed tr uname; do tools+=("$(command -v "$tool")=/usr/bin/$tool"); done

[ $# -gt 0 ] || set -- ping skywalking-ping mariadb redis jaeger zipkin oap elasticsearch prometheus
for name; do
  case $name in
    ping | skywalking-ping) image "$name" "$target/subjects/$name=/ping" ;;
    mariadb)
      # Empty, without passwords.
      [ -d "$made/mariadb" ] || mysql_install_db --no-defaults --user="$(id -un)" --datadir="$made/mariadb" --innodb-log-file-size=8M \
        --auth-root-authentication-method=normal --skip-test-db >/dev/null
      image mariadb /usr/sbin/mariadbd /usr/bin/mariadb-admin /usr/share/mysql "$made/mariadb=/data" ;;
    redis) image redis /usr/bin/redis-server /usr/bin/redis-cli ;;
    jaeger) image jaeger "$parts/jaeger/jaeger=/jaeger" jaeger=/settings ;;
    zipkin) jre && image zipkin "$made/jre=/jre" "$(echo "$parts"/zipkin/*.jar)=/zipkin.jar" ;;
    oap) jre && image oap "$made/jre=/jre" "${tools[@]}" ../parts/oap.sh=/oap.sh "$parts/oap/libs=/libs" oap=/settings ;;
    elasticsearch) jre && image elasticsearch "$made/jre=/jre" "${tools[@]}" ../parts/elasticsearch.sh=/elasticsearch.sh "$parts/elasticsearch=/elasticsearch" ;;
    prometheus) image prometheus /usr/bin/prometheus prometheus.yml=/prometheus.yml ;;
    *) echo "there is no image called $name" >&2; exit 2 ;;
  esac
done
