#!/usr/bin/env bash
# Holds a running service against its own openapi.yaml with schemathesis: examples, boundary values,
# random requests and sequences of them, every reply checked. Fails on anything it finds.
#
#   scripts/test-contract.sh [EXAMPLES [SEED]]     examples per operation (30), seed of the run (1)
#
# Needs Python 3 with venv (or virtualenv). State: target/contract.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python.sh
readonly schemathesis_version=4.32.5
examples=${1:-30} seed=${2:-1}

state=target/contract
mkdir -p "$state"
python_package "$state" schemathesis==$schemathesis_version
cargo build --locked --bin spillbox

run=$(mktemp -d)
service=
clean_up() {
  [ -z "$service" ] || { kill "$service" && wait "$service"; } 2>/dev/null || true
  rm -rf "$run"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# The service says where it listens; port 0 lets the system choose.
RUST_LOG=info target/debug/spillbox serve --listen 127.0.0.1:0 --store "local:$run/store" >"$run/log" 2>&1 &
service=$!
url=
for _ in $(seq 300); do
  url=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$run/log" | head -1 || true)
  [ -z "$url" ] || ! curl -fsS "$url/readyz" >/dev/null 2>&1 || break
  kill -0 "$service" 2>/dev/null || { cat "$run/log" >&2; exit 1; }
  sleep 0.1
done

# In its own directory, since it keeps a database of what it found.
project=$PWD
cd "$run"
SCHEMATHESIS_HOOKS="$project/tests/contract/hooks.py" \
  "$project/$state/venv/bin/st" --config-file "$project/tests/contract/schemathesis.toml" \
  run "$url/openapi.yaml" --url "$url" --checks all --continue-on-failure \
  --seed "$seed" -n "$examples" --no-color --generation-database none
