#!/usr/bin/env bash
# Ends the job by the outcome.
set -euo pipefail

case $OUTCOME:$ON_UNDECIDED in
  pass:*) echo "Every budget is kept." ;;
  fail:*)
    echo "::error::A budget is exceeded: see the job's summary."
    exit 1
    ;;
  undecided:pass) echo "A budget is undecided." ;;
  undecided:warn) echo "::warning::A budget is undecided: more rounds or a quieter machine would tell. See the job's summary." ;;
  undecided:fail)
    echo "::error::A budget is undecided, and on-undecided is \`fail\`: more rounds or a quieter machine would tell."
    exit 1
    ;;
  undecided:*)
    echo "::error::on-undecided is \`$ON_UNDECIDED\`; it takes warn, fail or pass."
    exit 1
    ;;
  *)
    echo "::error::The study could not be measured: see the log of the step before."
    exit 1
    ;;
esac
