#!/usr/bin/env bash
# Builds the ticket shop, and gets the agent from Maven Central, into target/tickets; does nothing if that is newer than the sources.
#   build.sh           without the tests
#   build.sh verify    with them
set -euo pipefail
cd "$(dirname "$0")"
made=../../target/tickets/.made
if [ -e "$made" ] && [ -z "$(find . -type f -newer "$made" -print -quit)" ]; then exit; fi
case ${1:-package} in
  verify) mvn -q -B -Dstyle.color=never verify ;;
  package) mvn -q -B -Dstyle.color=never -DskipTests package ;;
  *) echo "there is only \`verify\`" >&2; exit 2 ;;
esac
touch "$made"
