#!/usr/bin/env bash
# Builds the shop, and gets the agents from Maven Central, into target/shop; does nothing if that is newer than the sources.
set -euo pipefail
cd "$(dirname "$0")"
made=../../target/shop/.made
if [ -e "$made" ] && [ -z "$(find . -type f -newer "$made" -print -quit)" ]; then exit; fi
mvn -q -B -Dstyle.color=never -DskipTests package
touch "$made"
