#!/usr/bin/env bash
# Kills real processes at random on a directory and on real servers, and then looks at every object.
# See scripts/soak.py.
#
#   scripts/soak.sh MINUTES [STORE…]     on each of: local, seaweedfs, ministack (all of them)
#
# SPILLBOX_SOAK_SEED repeats which process is killed when; the moments within them stay chance.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?usage: soak.sh MINUTES [STORE…]}
shift
[ $# -gt 0 ] || set -- local seaweedfs ministack
seed=${SPILLBOX_SOAK_SEED:-$RANDOM}

cargo build --locked --bin spillbox
current=
clean_up() { [ -z "$current" ] || scripts/stores.sh down "$current"; }
trap clean_up EXIT
trap 'exit 130' INT TERM

for store in "$@"; do
  if [ "$store" = local ]; then
    python3 scripts/soak.py target/debug/spillbox "$minutes" local "$seed"
    continue
  fi
  current=$store
  settings=$(scripts/stores.sh up "$store")
  (
    eval "$settings"
    python3 scripts/soak.py target/debug/spillbox "$minutes" s3 "$seed"
  )
  scripts/stores.sh down "$store"
  current=
done
