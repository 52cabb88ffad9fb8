#!/usr/bin/env bash
# All Rust tests of these targets (`--tests`, …). The end-to-end tests measure, and a machine that others use can disturb a
# measurement: when nothing but end-to-end tests failed, those are asked again, by name and with nothing beside them. Who fails three
# times fails.
set -uo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$cargo" test --release --locked --workspace --no-fail-fast "$@" 2>&1 | tee "$log" && exit 0

# Cargo ends with the list of what failed, one target in a line.
failed=$(sed -n '/^error: .* failed:$/,$p' "$log" | sed -n 's/^ *`\(.*\)`$/\1/p')
if [ "$failed" != "-p unladen --test e2e" ]; then
  echo "failed: ${failed:-the build}"
  exit 1
fi
for _ in 1 2; do
  mapfile -t again < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
  [ ${#again[@]} -gt 0 ] || exit 1
  echo "once more, as a busy machine may have disturbed them: ${again[*]}"
  "$cargo" test --release --locked --workspace --test e2e -- --test-threads 1 --exact "${again[@]}" 2>&1 | tee "$log" && exit 0
done
exit 1
