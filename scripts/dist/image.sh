#!/usr/bin/env bash
# The container image without a build: the static executable, the certificates of this machine, and /tmp, imported. For a machine
# that cannot pull the base of the Dockerfile.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
install -d -m 1777 "$folder/tmp"
install -m 755 "target/$(uname -m)-unknown-linux-musl/dist/unladen" "$folder/unladen"
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"
# Sorted and dated, so that the same files make the same layer.
tar -C "$folder" -c --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" . |
  docker import --change 'ENTRYPOINT ["/unladen"]' - "unladen:$version"
docker tag "unladen:$version" unladen:latest
docker images unladen
