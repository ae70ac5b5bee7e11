#!/usr/bin/env bash
# Builds deploy/Dockerfile as it is, on a machine without an image registry: its RUST_IMAGE is a tool-chain image made
# of Debian's packages, this host's Rust and vendored crates. Slow (a release build): for before a release.
#
#   scripts/check-dockerfile.sh
#
# Needs docker, cargo and Debian's apt as root. State: target/dockerfile.
set -euo pipefail
cd "$(dirname "$0")/.."
state=$PWD/target/dockerfile
rust=rust-local:$(rustc --version | cut -d' ' -f2)
tag=spillbox-local:dockerfile
began=$SECONDS
mkdir -p "$state"

say() { echo "dockerfile: $*"; }

if ! docker image inspect "$rust" >/dev/null 2>&1; then
  command -v mmdebstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq mmdebstrap; } >/dev/null 2>&1
  mmdebstrap --quiet --variant=essential \
    --include=ca-certificates,gcc,g++,libc6-dev,make,cmake,perl bookworm - 2>"$state/mmdebstrap.log" |
    docker import - debian-build-local:bookworm >/dev/null
  say "a Debian with a C compiler; $((SECONDS - began)) s"
  context=$state/rust
  rm -rf "$context" && mkdir -p "$context"
  cp -a "$(rustc --print sysroot)" "$context/toolchain"
  rm -rf "$context/toolchain/share/doc"
  cargo vendor --locked --quiet "$context/vendor" >/dev/null
  cat >"$context/config.toml" <<'EOF'
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "/opt/vendor"
EOF
  cat >"$context/Dockerfile" <<'EOF'
FROM debian-build-local:bookworm
COPY toolchain /opt/rust
COPY vendor /opt/vendor
COPY config.toml /opt/cargo/config.toml
ENV CARGO_HOME=/opt/cargo PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
EOF
  docker build --quiet -t "$rust" "$context" >/dev/null 2>"$state/log" || { cat "$state/log" >&2; exit 1; }
  rm -rf "$context"
  say "the tool-chain image $rust; $((SECONDS - began)) s"
fi

docker build --build-arg RUST_IMAGE="$rust" -f deploy/Dockerfile -t "$tag" . >"$state/build.log" 2>&1 ||
  { tail -n 40 "$state/build.log" >&2; exit 1; }
say "built; $((SECONDS - began)) s, $(docker image inspect -f '{{.Size}}' "$tag") bytes"
docker run --rm "$tag" --version
say "as $(docker image inspect -f '{{.Config.User}}' "$tag"), health check $(docker image inspect -f '{{.Config.Healthcheck.Test}}' "$tag")"
listed() { docker export "$1" | tar -tv | awk '{ print $1, $2, $6 }' | grep -v -e ' dev/' -e ' proc/' -e ' sys/' -e ' etc/\(hostname\|hosts\|resolv.conf\|mtab\)$' -e '.dockerenv$' | sort -k3; }
container=$(docker create "$tag")
listed "$container" >"$state/files"
docker rm "$container" >/dev/null
local_tag=$(scripts/image.sh)
container=$(docker create "$local_tag")
listed "$container" >"$state/files.local"
docker rm "$container" >/dev/null
diff "$state/files" "$state/files.local" || { echo "dockerfile: scripts/image.sh makes another layout" >&2; exit 1; }
say "the same layout as scripts/image.sh makes: $(wc -l <"$state/files") entries"
sed 's/^/  /' "$state/files"
