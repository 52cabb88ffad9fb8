#!/usr/bin/env bash
# Runs OpenTelemetry's agent over eBPF beside a Go service: attach.sh AGENT EXECUTABLE. The service is the process of this executable in
# the network that this script is in; there may be more of it in other networks. Needs root.
#
# The agent mounts /sys/fs/bpf where nobody has; with mounts of its own that ends with it.
set -euo pipefail
agent=$(realpath "$1")
executable=$(realpath "$2")
network=$(readlink /proc/self/ns/net)
for exe in $(find /proc/[0-9]*/exe -maxdepth 0 -lname "$executable" 2>/dev/null); do
  process=${exe%/exe}
  if [ "$(readlink "$process/ns/net")" = "$network" ]; then
    exec unshare --mount "$agent" -target-pid "${process#/proc/}"
  fi
done
echo "no process of $executable is in this network: start the service first" >&2
exit 1
