#!/usr/bin/env bash
# Fetches and builds the real backends of the studies, each by name and pinned version from the Go proxy or Maven Central,
# into a folder that stays (target/studies). What is there already is left alone, so that an interrupted run goes on where it was.
#   fetch.sh INTO [PART…]      parts: jaeger zipkin oap elasticsearch ferretdb; all of them without a name
# Go modules are verified by the checksum database, what comes from Maven Central by the sums in this folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?where to put the parts}"
into=$(cd "$1" && pwd)
shift

JAEGER=v1.76.0 # the module's number for Jaeger v2.13.0
ZIPKIN=3.6.1
OAP=10.1.0
ELASTICSEARCH=7.17.29
FERRETDB=v1.24.0
MAVEN_DEPENDENCY=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

say() { printf '%s %s\n' "$(date -u +%H:%M:%S)" "$*"; }

# A part is built in a folder beside its own and moved there when it is whole.
part() { # NAME VERSION FUNCTION "HOW LONG"
  local name=$1 version=$2 build=$3 time=$4 started=$SECONDS
  if [ "$(cat "$into/$name/.version" 2>/dev/null)" = "$version" ]; then say "$name $version: there already"; return; fi
  say "$name $version: $time"
  mkdir -p "$into/.making/$name"
  "$build" "$into/.making/$name"
  echo "$version" > "$into/.making/$name/.version"
  rm -rf "${into:?}/$name"
  mv "$into/.making/$name" "$into/$name"
  say "$name $version: done in $((SECONDS - started)) s"
}

maven_get() { # COORDINATES FILE INTO
  "$here/../../scripts/mvn.sh" "$MAVEN_DEPENDENCY:copy" -Dartifact="$1" -DoutputDirectory="$3" -Dmdep.useBaseVersion=true
  (cd "$3" && grep -F " $2" "$here/maven.sha256" | sha256sum -c --quiet -)
}

# `go install` refuses a module whose go.mod replaces others, and one that the proxy cannot list; so the source is copied and built.
go_source() { # MODULE@VERSION FOLDER
  [ ! -e "$2/.copied" ] || return 0
  rm -rf "$2"
  local found
  found=$(cd "$into" && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  cp -r "$found" "$2"
  chmod -R u+w "$2"
  touch "$2/.copied"
}

go_build() { # SOURCE PROGRAM INTO
  (cd "$1" && GOWORK=off GOFLAGS=-mod=mod go build -trimpath -buildvcs=false -o "$3/" "./cmd/$2")
  rm -rf "$1"
}

make_jaeger() {
  local source="$into/.making/jaeger-source"
  go_source "github.com/jaegertracing/jaeger@$JAEGER" "$source"
  go_build "$source" jaeger "$1"
}

make_ferretdb() {
  local source="$into/.making/ferretdb-source"
  go_source "github.com/FerretDB/FerretDB@$FERRETDB" "$source"
  # Without it, it stops as it starts.
  echo "$FERRETDB" >"$source/build/version/version.txt"
  go_build "$source" ferretdb "$1"
}

make_zipkin() { maven_get "io.zipkin:zipkin-server:$ZIPKIN:jar:exec" "zipkin-server-$ZIPKIN-exec.jar" "$1"; }

make_oap() {
  "$here/../../scripts/mvn.sh" -f "$here/oap.xml" -Doap.version="$OAP" "$MAVEN_DEPENDENCY:copy-dependencies" -DoutputDirectory="$1/libs"
  (cd "$1/libs" && sha256sum -c --quiet "$here/oap.sha256")
}

make_elasticsearch() {
  local archive="elasticsearch-$ELASTICSEARCH.zip"
  maven_get "org.elasticsearch.distribution.integ-test-zip:elasticsearch:$ELASTICSEARCH:zip" "$archive" "$into/.making"
  rm -rf "$1/unpacked"
  unzip -q "$into/.making/$archive" -d "$1/unpacked"
  mv "$1/unpacked/elasticsearch-$ELASTICSEARCH"/* "$1"
  rm -rf "$1/unpacked" "$into/.making/$archive"
}

[ $# -gt 0 ] || set -- jaeger zipkin oap elasticsearch ferretdb
for name; do
  case $name in
    jaeger) part jaeger "$JAEGER" make_jaeger "6 minutes of Go builds on 2 cores" ;;
    zipkin) part zipkin "$ZIPKIN" make_zipkin "135 MB from Maven Central" ;;
    oap) part oap "$OAP" make_oap "263 jars, 132 MB from Maven Central, 3 minutes" ;;
    elasticsearch) part elasticsearch "$ELASTICSEARCH" make_elasticsearch "57 MB from Maven Central" ;;
    ferretdb) part ferretdb "$FERRETDB" make_ferretdb "3 minutes of Go builds on 2 cores" ;;
    *) echo "there is no part called $name: jaeger, zipkin, oap, elasticsearch or ferretdb" >&2; exit 2 ;;
  esac
done
rmdir "$into/.making" 2>/dev/null || true
