#!/usr/bin/env bash
# Installs the load generators that unladen's is compared with into a folder: peers.sh DIR. What is there already stays.
# Nearly everything comes from package registries (Debian, the Go proxy, crates.io, PyPI) at fixed versions. wrk2, gcannon and
# zrk are in none: their sources come from SOURCES (default: https://github.com), and without it they are left out.
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

# Sources at a commit, in a new folder: its path is printed.
sources() { # REPOSITORY COMMIT
  local folder
  folder=$(mktemp -d)
  git -C "$folder" init -q
  GIT_TERMINAL_PROMPT=0 timeout 120 git -C "$folder" fetch -q --depth 1 "${SOURCES:-https://github.com}/$1" "$2" &&
    git -C "$folder" checkout -q FETCH_HEAD || { rm -rf "$folder"; return 1; }
  echo "$folder"
}

# Builds a tool from its sources, unless it is there: a function NAME_from_source that leaves the executable in DIR/bin.
from_source() { # NAME
  [ -x "$into/bin/$1" ] && return
  local status=0
  set +e # Within a condition -e would not count in the function either.
  (set -e; "$1_from_source")
  status=$?
  set -e
  [ $status = 0 ] || echo "peers: $1 cannot be built here; it is left out" >&2
}

wrk2_from_source() {
  folder=$(sources giltene/wrk2 44a94c17d8e6a0bac8559b53da76848e430cb7a7)
  make -C "$folder" >/dev/null 2>&1
  install "$folder/wrk" "$into/bin/wrk2"
  rm -rf "$folder"
}

gcannon_from_source() {
  ring=$(sources axboe/liburing 27255f4ceda937b3540e425ed58284f5c03c8ad4)
  folder=$(sources MDA2AV/gcannon 43b30bc24c8cc6aab37dd7d718b47ffb985e6558)
  (cd "$ring" && ./configure && make -C src) >/dev/null 2>&1
  make -C "$folder" LDFLAGS="$ring/src/liburing.a -lpthread" \
    CFLAGS="-O2 -march=native -Iinclude -DUSE_PICO -Iexternal/picohttpparser -I$ring/src/include" >/dev/null
  install "$folder/gcannon" "$into/bin/gcannon"
  rm -rf "$folder" "$ring"
}

# Zig is on PyPI. The one dependency is taken from a folder, since Zig's own fetching knows no mirror.
zrk_from_source() {
  folder=$(sources zoxy-io/zrk 87455f2bbe8e0d4eb405af0a7211462145fe58fa)
  zio=$(sources lalinsky/zio 9711d68104946a457f151776000210d8adca3f3e)
  mv "$zio" "$folder/zio"
  sed -i 's|\.url = "git+https://github.com/lalinsky/zio.*|.path = "zio",|; /\.hash = "zio-/d' "$folder/build.zig.zon"
  python3 -m venv "$folder/zig"
  "$folder/zig/bin/pip" install -q ziglang==0.16.0
  (cd "$folder" && zig/bin/python -m ziglang build -Doptimize=ReleaseFast)
  install "$folder/zig-out/bin/zrk" "$into/bin/zrk"
  rm -rf "$folder"
}

for tool in wrk2 gcannon zrk; do from_source $tool; done
