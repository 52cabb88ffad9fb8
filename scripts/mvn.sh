#!/usr/bin/env bash
# Maven that says nothing unless something is wrong, and that without colours: Debian's resets those that it was told not to use.
set -euo pipefail
mvn -q -B -Dstyle.color=never "$@" 2>&1 | sed 's/\x1b\[0m//g'
