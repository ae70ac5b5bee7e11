#!/usr/bin/env bash
# Makes the image of deploy/Dockerfile's last stage from a binary that is built here: for machines without an
# image registry, and without the minutes that a release build takes. The layout is that file's own.
#
#   scripts/image.sh [TAG [BINARY]]    spillbox-local:dev; a static binary, built by scripts/static-binary.sh
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:-spillbox-local:dev}
binary=${2:-$(scripts/static-binary.sh)}

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/image/usr/bin" "$stage/image/etc/ssl/certs" "$stage/state"
cp "$binary" "$stage/image/usr/bin/spillbox"
cp /etc/ssl/certs/ca-certificates.crt "$stage/image/etc/ssl/certs/ca-certificates.crt"
sed -n '/^FROM scratch$/,$ p' deploy/Dockerfile | sed 's/^COPY --from=build /COPY /' >"$stage/Dockerfile"
grep -q '^FROM scratch$' "$stage/Dockerfile" || { echo "image: deploy/Dockerfile has no last stage" >&2; exit 1; }
docker build --quiet -t "$tag" "$stage" >/dev/null 2>"$stage/log" || { cat "$stage/log" >&2; exit 1; }
echo "$tag"
