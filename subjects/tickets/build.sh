#!/usr/bin/env bash
# Builds the ticket shop, and gets the agent from Maven Central, into target/tickets; does nothing if that is newer than the sources.
#   build.sh           without the tests
#   build.sh verify    with them
exec "$(dirname "$0")/../maven.sh" tickets tickets "$@"
