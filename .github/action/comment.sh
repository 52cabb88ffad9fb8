#!/usr/bin/env bash
# Writes gate.md as a comment on the pull request, or over the comment that an earlier run wrote for the same study: a hidden mark
# in its first line tells it. A job that may not write (a pull request from a fork) gets a warning and goes on.
set -euo pipefail

# GitHub takes 65,536 characters.
most=60000
mark="<!-- unladen: $STUDY -->"
number=$(jq -r .pull_request.number "$GITHUB_EVENT_PATH")
run=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID
if [ ! -s "$OUT/gate.md" ]; then
  echo "No report was made, so there is nothing to comment."
  exit
fi

request() {
  curl --fail --silent --show-error --retry 3 --header "Authorization: Bearer $TOKEN" \
    --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' "$@"
}

body=$(mktemp)
trap 'rm -f "$body"' EXIT
jq --null-input --rawfile report "$OUT/gate.md" --arg mark "$mark" --arg run "$run" --argjson most "$most" '
  ($report | if length > $most then .[:$most] + "\n\n(The rest is in the run.)" else . end) as $report
  | {body: "\($mark)\n\($report)\n\n[The run and its artifacts](\($run))"}' > "$body"

comments=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$number/comments
id=
page=1
while [ -z "$id" ]; do
  found=$(request "$comments?per_page=100&page=$page") || break
  id=$(jq -r --arg mark "$mark" 'map(select(.body | startswith($mark)))[0].id // empty' <<< "$found")
  [ "$(jq length <<< "$found")" -eq 100 ] || break
  page=$((page + 1))
done

if [ -n "$id" ]; then
  request --request PATCH --data @"$body" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/comments/$id" > /dev/null && exit
else
  request --request POST --data @"$body" "$comments" > /dev/null && exit
fi
echo "::warning::The report could not be written as a comment. Give the job \`permissions: pull-requests: write\`; on pull requests from forks GitHub does not allow it, so set \`comment: false\` there. The report is in the job's summary."
