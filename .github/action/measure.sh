#!/usr/bin/env bash
# Runs the study and judges it. Whatever comes out is in the outputs and in the summary of the job; verdict.sh fails the job.
set -uo pipefail

read -ra more <<< "${ARGS:-}"
budgets=()
while IFS= read -r line; do
  line=${line//[[:space:]]/}
  [ -z "$line" ] || budgets+=(--budget "$line")
done <<< "${BUDGETS:-}"

# A study that is void ends with 2, too, and has a report that says why.
unladen run "$STUDY" --out "$OUT" --plain "${more[@]}"
code=$?
if [ -e "$OUT/journal.jsonl" ]; then
  unladen gate "$OUT" "${budgets[@]}" --junit "$OUT/unladen.xml" --format markdown > "$OUT/gate.md"
  code=$?
  cat "$OUT/gate.md" >> "$GITHUB_STEP_SUMMARY"
fi
case $code in
  0) outcome=pass ;;
  1) outcome=fail ;;
  3) outcome=undecided ;;
  *) outcome=error ;;
esac
echo "outcome=$outcome" >> "$GITHUB_OUTPUT"
