#!/usr/bin/env bash
# Drives the MCP tools with the official Python client, over streamable HTTP and over standard input and
# output, in both of the protocol's ways to begin.
#
#   scripts/test-mcp.sh [unittest arguments]
#
# Needs Python 3.10 or later with venv (or virtualenv). State: target/mcp.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python.sh
readonly mcp_version=2.3.0
readonly least_tests=24

state=target/mcp
mkdir -p "$state"
python_package "$state" mcp==$mcp_version
cargo build --locked --bin spillbox

run=$(mktemp -d)
service=
clean_up() {
  [ -z "$service" ] || { kill "$service" && wait "$service"; } 2>/dev/null || true
  rm -rf "$run"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

export SPILLBOX_BINARY=$PWD/target/debug/spillbox
make_token() { # NAME SCOPES: appends its lines to the settings, prints the token
  "$SPILLBOX_BINARY" token hash --generate --name "$1" --tenant default --scopes "$2" \
    2>"$run/told" >>"$run/spillbox.toml"
  grep -o 'sbx_[A-Za-z0-9_-]*' "$run/told"
}
SPILLBOX_TOKEN=$(make_token agent save,read)
SPILLBOX_READER_TOKEN=$(make_token reader read)
export SPILLBOX_TOKEN SPILLBOX_READER_TOKEN

RUST_LOG=info "$SPILLBOX_BINARY" serve --config "$run/spillbox.toml" --listen 127.0.0.1:0 \
  --store "local:$run/store" >"$run/log" 2>&1 &
service=$!
SPILLBOX_URL=
for _ in $(seq 300); do
  SPILLBOX_URL=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$run/log" | head -1 || true)
  [ -z "$SPILLBOX_URL" ] || ! curl -fsS "$SPILLBOX_URL/readyz" >/dev/null 2>&1 || break
  kill -0 "$service" 2>/dev/null || { cat "$run/log" >&2; exit 1; }
  sleep 0.1
done
export SPILLBOX_URL PYTHONDONTWRITEBYTECODE=1
cd tests/mcp
"$OLDPWD/$state/venv/bin/python" -m unittest "${@:-test_mcp}" 2>&1 | tee "$run/tests"
[ $# -gt 0 ] || {
  ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$run/tests")
  [ "${ran:-0}" -ge $least_tests ] || { echo "failed: $ran tests ran, $least_tests wanted" >&2; exit 1; }
}
