#!/usr/bin/env bash
# Installs the load generators that unladen's is compared with into a folder: peers.sh DIR. What is there already stays.
# Everything comes from package registries (Debian, the Go proxy, crates.io) at fixed versions.
set -euo pipefail
into=$(realpath -m "$1")
mkdir -p "$into/bin"

missing=""
for package in wrk nghttp2-client nghttp2-server; do
  dpkg-query -W -f='${Status}' $package 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

# A module of our own per tool instead of `go install`: that asks for lists of versions, which not every proxy has.
# Fixed versions; the proxy's own checksums are not in every checksum database either.
go_tool() { # NAME MODULE VERSION [PACKAGE]
  local name=$1 module=$2 version=$3 package=${4:-$2} folder
  [ -x "$into/bin/$name" ] && return
  folder=$(mktemp -d)
  (
    cd "$folder"
    go mod init peer 2>/dev/null
    go mod edit -require "$module@$version"
    GOFLAGS=-mod=mod GONOSUMDB='*' go build -ldflags "-s -w -X main.Version=$version -X main.version=$version" -o "$into/bin/$name" "$package"
  ) || echo "peers: $name cannot be built here; it is left out" >&2
  rm -rf "$folder"
}
if command -v go >/dev/null; then
  go_tool vegeta github.com/tsenart/vegeta/v12 v12.13.0
  go_tool bombardier github.com/codesenberg/bombardier v1.2.6
  go_tool hey github.com/rakyll/hey v0.1.5
  go_tool fortio fortio.org/fortio v1.60.3
  go_tool k6 go.k6.io/k6 v1.8.1
else
  echo "peers: no Go toolchain; vegeta, bombardier, hey, fortio and k6 are left out" >&2
fi

[ -x "$into/bin/oha" ] || cargo install oha --version 1.16.0 --locked --no-default-features --features rustls --root "$into" ||
  echo "peers: oha cannot be built here; it is left out" >&2
