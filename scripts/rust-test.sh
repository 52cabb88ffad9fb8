#!/usr/bin/env bash
# All Rust tests. The end-to-end tests measure and the senders' are programs of others: a machine that others use can disturb both. Tests
# that fail are asked again, by name and with nothing beside them. Who fails three times fails.
set -uo pipefail
cd "$(dirname "$0")/.."
test="${CARGO:-cargo} test --release --locked --workspace"
times=${CARGO_TARGET_DIR:-target}/tmp/e2e-times
rm -f "$times"
log=$(mktemp)
trap 'rm -f "$log"; longest' EXIT
# What to shorten first: a test of a quarter of the machine lets three others run beside it.
longest() {
  [ -e "$times" ] || return 0
  awk '{ whole = $1 * $3 / $5; sum += whole; printf "%7.1f s of the whole machine: %s (%s s, %s of %s seats)\n", whole, $7, $1, $3, $5 }
    END { printf "%7.1f s of the whole machine: all end-to-end tests\n", sum }' "$times" | sort -rn | head -21
}

# ask SELECTION OPTIONS: runs the tests that Cargo's options select, with these options of the harness.
ask() {
  local selection=$1 options=$2 again=()
  # Names of targets have patterns in them, which are Cargo's and not the shell's.
  set -f
  for _ in 1 2 3; do
    [ ${#again[@]} = 0 ] || echo "once more, as a busy machine may have disturbed them: ${again[*]}"
    $test --no-fail-fast $selection -- $options "${again[@]}" 2>&1 | tee "$log" && return
    mapfile -t again < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
    # Whoever was aborted has not said which of its tests failed.
    [ ${#again[@]} -gt 0 ] && ! grep -q "process didn't exit successfully:.*(signal:" "$log" || break
    options='--test-threads 1 --exact'
  done
  exit 1
}

# A pattern, as Cargo cannot leave out one target: everything but `e2e`.
ask '--lib --bins --test [!e]*' ''

# They take turns at the processor themselves; more threads than cores let those that only count go on beside each other while one that
# measures waits for the whole machine.
ask '--test e2e' '--test-threads 16'
