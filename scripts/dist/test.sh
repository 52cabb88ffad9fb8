#!/usr/bin/env bash
# Packages a stand-in that starts the given unladen, twice, and installs it in every way: the same bytes, and each runs. Whether the
# real executables are right is for `make dist`; this is about what is around them.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
unladen=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

printf '#!/bin/sh\nexec %s "$@"\n' "$unladen" > stand-in
chmod +x stand-in
for out in once again; do
  "$here/package.py" --out "$out" "$(uname -m)=stand-in" > /dev/null
done
cmp once/SHA256SUMS again/SHA256SUMS
(cd once && sha256sum --check --quiet SHA256SUMS)

wanted=$("$unladen" --version)
runs() {
  found=$("$2" --version)
  [ "$found" = "$wanted" ] || { echo "$1: expected \`$wanted\`, found \`$found\`"; exit 1; }
}
mkdir archive && tar -xzf once/unladen-*-linux.tar.gz -C archive --strip-components 1
runs archive archive/bin/unladen
dpkg-deb --extract once/*.deb debian
runs Debian debian/usr/bin/unladen
[ "$(gzip -dc debian/usr/share/man/man1/unladen-run.1.gz | grep -c '^\.TH')" = 1 ] || { echo "no manual page"; exit 1; }
python3 -m venv python && python/bin/pip install --quiet --disable-pip-version-check --no-index once/*.whl
runs Python python/bin/unladen
npm install --global --prefix node --silent --no-fund --no-audit --offline ./once/*.tgz
runs npm node/bin/unladen
echo "packages: the same twice, and each runs"
