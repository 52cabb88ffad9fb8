#!/usr/bin/env bash
# Static executables for the architectures given (x86_64, aarch64), into target/ARCH-unknown-linux-musl/dist/unladen. Needs Rust by
# rustup and Python; fetches Zig's C compiler from PyPI once, pinned. The same commit gives the same bytes wherever it is built:
# no path of this machine, no time of day gets into them.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=target/dist-tools
requirements=scripts/dist/requirements.txt
if ! cmp -s "$requirements" "$tools/requirements.txt"; then
  echo "installing: Zig's C compiler and cargo-zigbuild in $tools"
  python3 -m venv --clear "$tools"
  "$tools/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$requirements"
  cp "$requirements" "$tools/requirements.txt"
fi
PATH="$PWD/$tools/bin:$PATH"

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$PWD=/unladen --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$(rustc --print sysroot)=/rust"
export CFLAGS="-ffile-prefix-map=$PWD=/unladen -ffile-prefix-map=$cargo_home=/cargo"

for arch in "$@"; do
  target=$arch-unknown-linux-musl
  if command -v rustup >/dev/null; then rustup -q target add "$target"; fi
  cargo zigbuild --profile dist --locked -p unladen --target "$target"
done
