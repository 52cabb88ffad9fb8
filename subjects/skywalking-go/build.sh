#!/usr/bin/env bash
# Builds a subject with SkyWalking's Go agent woven in: build.sh SUBJECTS OUT COMMAND…, as `build.sh ../go ../../target/subjects ./cmd/ping`;
# the executables are called OUT/skywalking-ping and so on. PLUGINS says what is woven: folders beside this script.
#
# The agent's core and its weaver are Apache's (github.com/apache/skywalking-go v0.6.0, from the Go proxy); its plugins are not to be had
# there, so those in this folder are our own. The weaver's source is copied because its list of plugins is a part of it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
subjects=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2

AGENT=github.com/apache/skywalking-go/tools/go-agent@v0.0.0-20250423075209-b7f3404dacc0 # the commit of v0.6.0
weaver="$out/.skywalking"
source="$weaver/source"
plugins=${PLUGINS:-gin http goredis gorm}
wanted="$AGENT $plugins $(cat "$here"/*/*.go "$here"/go.sum "$0" | sha256sum) $(go version)"
if [ "$(cat "$weaver/.version" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$weaver"
  mkdir -p "$weaver"
  found=$(cd "$weaver" && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$AGENT" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  cp -r "$found" "$source"
  chmod -R u+w "$source"
  # Takes the place of the agent's own list, of which none is on the Go proxy.
  {
    printf 'package plugins\n\nimport (\n\t"github.com/apache/skywalking-go/plugins/core/instrument"\n'
    printf '\t%s "unladen/subjects/skywalking-go/%s"\n' $(for plugin in $plugins; do echo "$plugin $plugin"; done)
    printf ')\n\nvar instruments = []instrument.Instrument{\n'
    printf '\t%s.NewInstrument(),\n' $plugins
    printf '}\n'
  } > "$source/instrument/plugins/register.go"
  printf 'go 1.26.0\nuse (\n\t./source\n\t%s\n)\n' "$here" > "$weaver/go.work"
  (cd "$source" && GOWORK="$weaver/go.work" GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$weaver/agent" ./cmd)
  echo "$wanted" > "$weaver/.version"
fi

# Go does not know that a weaver changes what it compiles, so what is woven has a build cache of its own.
cd "$subjects"
for command; do
  GOCACHE="$weaver/cache" go build -trimpath=false -buildvcs=false -tags skywalking -toolexec="$weaver/agent" \
    -o "$out/skywalking-$(basename "$command")" "$command"
done
