#!/usr/bin/env bash
# Runs OpenTelemetry's agent over eBPF beside a Go service: attach.sh AGENT EXECUTABLE. The service is the one process of this executable
# in the network that this script is in; there may be more of them in other networks. Needs root.
#
# The agent mounts /sys/fs/bpf where nobody has; with mounts of its own that ends with it.
set -euo pipefail
agent=$(realpath "$1")
executable=$(realpath "$2")
network=$(readlink /proc/self/ns/net)
services=()
for exe in $(find /proc/[0-9]*/exe -maxdepth 0 -lname "$executable" 2>/dev/null); do
  process=${exe%/exe}
  [ "$(readlink "$process/ns/net")" != "$network" ] || services+=("${process#/proc/}")
done
if [ ${#services[@]} != 1 ]; then
  echo "one process of $executable must be in the network of this one, and ${#services[@]} are: start the service first, and give each a network of its own" >&2
  exit 1
fi
exec unshare --mount "$agent" -target-pid "${services[0]}"
