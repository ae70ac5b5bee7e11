#!/usr/bin/env bash
# What the service costs over the bare store, and what an append to a journal costs, on the S3 server of the tests and on SeaweedFS.
#
#   scripts/bench.sh [in-process|NAME…]    NAME: a server of scripts/stores.sh
set -euo pipefail
cd "$(dirname "$0")/.."

started=
clean_up() { [ -z "$started" ] || scripts/stores.sh down "$started"; }
trap clean_up EXIT
trap 'exit 130' INT TERM

[ $# -gt 0 ] || set -- in-process seaweedfs
benches=(--bench ratios --bench journal_appends)
cargo bench --locked "${benches[@]}" --no-run
for store in "$@"; do
  if [ "$store" = in-process ]; then
    cargo bench --locked "${benches[@]}"
    continue
  fi
  settings=$(scripts/stores.sh up "$store")
  [ -n "$settings" ] || continue # It said why.
  started=$store
  (
    eval "$settings"
    cargo bench --locked "${benches[@]}"
  )
  scripts/stores.sh down "$store"
  started=
done
