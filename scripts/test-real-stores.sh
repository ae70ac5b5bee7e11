#!/usr/bin/env bash
# Runs every suite over real servers, one after another, and fails unless each ran as many cases as it
# must: a suite that skips itself is no success.
#
#   scripts/test-real-stores.sh [NAME…]    of scripts/stores.sh; all of them when none is named
#
# Afterwards `scripts/stores_table.py` writes what attestation saw into docs/STORES.md.
set -euo pipefail
cd "$(dirname "$0")/.."

# Attestation, conformance, saves, collections and the journal race, each in a plain and a versioned bucket, and
# buckets that are switched; or five refusals.
minimum_of() {
  case $1 in
    seaweedfs) echo 140 ;;
    ministack) echo 150 ;;
    minio) echo 144 ;;
    rclone | s3s-fs) echo 5 ;;
    *) echo "unknown store '$1'" >&2; exit 2 ;;
  esac
}

log=$(mktemp)
current=
clean_up() {
  [ -z "$current" ] || scripts/stores.sh down "$current"
  rm -f "$log"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

test_store() {
  local name=$1 minimum settings ran began=$SECONDS started
  minimum=$(minimum_of "$name")
  current=$name
  settings=$(scripts/stores.sh up "$name")
  if [ -z "$settings" ]; then # It said why.
    current=
    return 0
  fi
  started=$((SECONDS - began))
  (
    eval "$settings"
    timeout 900 cargo test --locked --test integration real_store:: -- --nocapture --test-threads=1
  ) | tee "$log"
  scripts/stores.sh down "$name"
  current=
  ran=$(awk '/^real store .* cases passed$/ { n += $(NF - 2) } END { print n + 0 }' "$log")
  echo "real store $name: $ran cases in all, at least $minimum wanted; $((SECONDS - began)) s, $started of them to start"
  [ "$ran" -ge "$minimum" ] || { echo "failed: too few cases ran on $name" >&2; exit 1; }
}

[ $# -gt 0 ] || set -- seaweedfs ministack rclone s3s-fs minio
cargo test --locked --no-run --test integration
for name in "$@"; do test_store "$name"; done
