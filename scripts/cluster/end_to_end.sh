#!/usr/bin/env bash
# The end-to-end tests of studies on a cluster: starts one whose pods share cores, tests, ends it.
set -euo pipefail
cd "$(dirname "$0")/../.."
test="${CARGO:-cargo} test --release --locked -p unladen --test e2e"
$test --no-run
scripts/cluster/cluster.py start --share
trap 'scripts/cluster/cluster.py stop' EXIT
UNLADEN_CLUSTER="$PWD/target/cluster/kubeconfig" $test cluster:: -- --test-threads 1 --nocapture
