#!/usr/bin/env bash
# Builds the shop, and gets the agents from Maven Central, into target/shop; does nothing if that is newer than the sources.
#   build.sh           without the tests
#   build.sh verify    with them
exec "$(dirname "$0")/../maven.sh" shop shop "$@"
