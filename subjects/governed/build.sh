#!/usr/bin/env bash
# Builds the governed applications and their agent, with their libraries from Maven Central, into target/governed; does nothing if
# that is newer than the sources.
#   build.sh           without the tests
#   build.sh verify    with them
set -euo pipefail
cd "$(dirname "$0")"
made=../../target/governed/.made
# Whoever comes second waits, and finds it done.
mkdir -p "$(dirname "$made")"
exec 8>"$(dirname "$made")/.lock"
flock 8
if [ -e "$made" ] && [ -z "$(find . ../governor -type f -newer "$made" -print -quit)" ]; then exit; fi
case ${1:-package} in
  verify) mvn -q -B -Dstyle.color=never verify ;;
  package) mvn -q -B -Dstyle.color=never -DskipTests package ;;
  *) echo "there is only \`verify\`" >&2; exit 2 ;;
esac
touch "$made"
