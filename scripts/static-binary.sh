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
linked=$(ldd "$binary" 2>&1 || true)
case $linked in
  *'statically linked'* | *'not a dynamic executable'*) ;;
  *) echo "static-binary: $binary is not static: $linked" >&2; exit 1 ;;
esac
echo "$binary"
