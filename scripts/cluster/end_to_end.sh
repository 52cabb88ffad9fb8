#!/usr/bin/env bash
# The end-to-end tests of studies on a cluster: starts one of two nodes whose pods share cores, tests, ends it.
set -euo pipefail
cd "$(dirname "$0")/../.."
test="${CARGO:-cargo} test --release --locked"
$test -p unladen-processes --test kubernetes -p unladen --test e2e --no-run
scripts/cluster/cluster.py start --share --nodes 2
trap 'scripts/cluster/cluster.py stop' EXIT
scripts/cluster/cluster.py operator
export UNLADEN_CLUSTER="$PWD/target/cluster/kubeconfig"
$test -p unladen-processes --test kubernetes
$test -p unladen --test e2e cluster:: -- --test-threads 1 --nocapture
