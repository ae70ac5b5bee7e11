#!/usr/bin/env bash
# Builds the static binary that images and sandboxes hold, and prints its path.
#
#   scripts/static-binary.sh [PROFILE]    a profile of Cargo.toml: image (default, quick to build) or release
#
# Static means glibc inside, on the host's own target: no musl tool chain is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-image}

host=$(rustc -vV | sed -n 's/^host: //p')
# With --target, since a statically linked proc macro cannot be loaded: the flags are for the program alone.
RUSTFLAGS='-C target-feature=+crt-static' \
  cargo build --locked --bin spillbox --profile "$profile" --target "$host" >&2
binary=${CARGO_TARGET_DIR:-target}/$host/$profile/spillbox
# ldd fails on a static program, and says so.
if ldd "$binary" >/dev/null 2>&1; then
  echo "static-binary: $binary is not static" >&2
  exit 1
fi
echo "$binary"
