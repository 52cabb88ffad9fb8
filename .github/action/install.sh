#!/usr/bin/env bash
# Installs a release of unladen for this job, held to its checksum. VERSION=installed takes what is on the PATH.
set -euo pipefail

if [ "$VERSION" = installed ]; then
  unladen --version
  exit
fi
arch=$(uname -m)
name=unladen-$VERSION-$arch-linux.tar.gz
from=$GITHUB_SERVER_URL/$REPOSITORY/releases/download/v$VERSION
into=$RUNNER_TEMP/unladen
mkdir -p "$into"
cd "$into"
for file in "$name" SHA256SUMS; do
  curl --fail --silent --show-error --location --retry 3 --header "Authorization: Bearer $TOKEN" --remote-name "$from/$file" || {
    echo "::error::unladen $VERSION for $arch is not at $from: see the releases for the versions that there are"
    exit 1
  }
done
grep "  $name\$" SHA256SUMS | sha256sum --check --quiet -
tar -xzf "$name" --strip-components 1
echo "$into/bin" >> "$GITHUB_PATH"
"$into/bin/unladen" --version
