#!/usr/bin/env bash
# Builds the governed applications and their agent, with their libraries from Maven Central, into target/governed; does nothing if
# that is newer than the sources.
#   build.sh           without the tests
#   build.sh verify    with them
exec "$(dirname "$0")/../maven.sh" governed "governed governor" "$@"
