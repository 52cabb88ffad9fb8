#!/usr/bin/env bash
# Builds OpenTelemetry's agent for Go over eBPF: ebpf.sh OUT; the executable is OUT/ebpf. Needs clang and llvm-strip.
#
# The Go proxy has its source without the eBPF programs that it embeds. clang compiles them from the C files among the source, for this
# machine's architecture only.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
AGENT=go.opentelemetry.io/auto@v0.24.0
for tool in clang llvm-strip; do
  command -v $tool >/dev/null || { echo "$tool is missing: \`apt-get install clang llvm\`" >&2; exit 1; }
done

source="$out/.ebpf"
rm -rf "$source"
found=$(cd "$out" && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$AGENT" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
cp -r "$found" "$source"
chmod -R u+w "$source"
cd "$source"
# A folder that is not in the module; the released one is its own.
go mod edit -dropreplace go.opentelemetry.io/auto/sdk
go mod download go.opentelemetry.io/auto/sdk
find internal/pkg/instrumentation/bpf -name probe.go -exec sed -i "s/^\(\/\/go:generate .*\) -target amd64,arm64 /\1 -target $(go env GOARCH) /" {} +
export BPF2GO_CFLAGS="-I$source/internal/include/libbpf -I$source/internal/include"
GOFLAGS=-mod=readonly go generate ./internal/pkg/instrumentation/bpf/... >generate.log 2>&1 || { cat generate.log >&2; exit 1; }
GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$out/ebpf" ./cli
rm -rf "$source"
