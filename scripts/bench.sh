#!/usr/bin/env bash
# What the service costs over the bare store, on the S3 server of the tests and on SeaweedFS.
#
#   scripts/bench.sh [in-process|NAME…]    NAME: a server of scripts/stores.sh
set -euo pipefail
cd "$(dirname "$0")/.."

started=
clean_up() { [ -z "$started" ] || scripts/stores.sh down "$started"; }
trap clean_up EXIT
trap 'exit 130' INT TERM

[ $# -gt 0 ] || set -- in-process seaweedfs
cargo bench --locked --bench ratios --no-run
for store in "$@"; do
  if [ "$store" = in-process ]; then
    cargo bench --locked --bench ratios
    continue
  fi
  settings=$(scripts/stores.sh up "$store")
  [ -n "$settings" ] || continue # It said why.
  started=$store
  (
    eval "$settings"
    cargo bench --locked --bench ratios
  )
  scripts/stores.sh down "$store"
  started=
done
