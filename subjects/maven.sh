#!/usr/bin/env bash
# Builds a subject with Maven: does nothing if what it makes, target/NAME, is newer than the sources. The `build.sh` of a subject calls it.
#   maven.sh NAME "FOLDER…" [verify]      folders are relative to subjects/, the first has the pom.xml; without `verify` no tests
set -euo pipefail
cd "$(dirname "$0")"
name=${1:?which subject}
read -ra folders <<<"${2:?which folders}"
made=../target/$name/.made
# Whoever comes second waits, and finds it done.
mkdir -p "$(dirname "$made")"
exec 8>"$(dirname "$made")/.lock"
flock 8
if [ -e "$made" ] && [ -z "$(find "${folders[@]}" -type f -newer "$made" -print -quit)" ]; then exit; fi
maven() { ../scripts/mvn.sh -f "${folders[0]}" "$@"; }
case ${3:-package} in
  verify) maven verify ;;
  package) maven -DskipTests package ;;
  *) echo "there is only \`verify\`" >&2; exit 2 ;;
esac
touch "$made"
