#!/usr/bin/env bash
# Holds what deploy/ ships against the tools that will read it: published Kubernetes schemas, CloudFormation's,
# promtool, systemd-analyze. That the files agree with the code is tests/integration/deploy.rs.
#
#   scripts/test-deploy.sh
#
# Needs Python 3 with venv; promtool and systemd-analyze where they are installed, else from Debian by apt; kubectl
# for the overlay, where it is installed. State: target/deploy.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/python.sh
readonly kubernetes_validate_version=1.37.0 cfn_lint_version=1.51.0
state=$PWD/target/deploy
mkdir -p "$state/kubernetes" "$state/cfn"

passed() { echo "deploy: $*"; }

python_package "$state/kubernetes" kubernetes-validate==$kubernetes_validate_version
for file in deploy/k8s/base/*.yaml deploy/k8s/overlays/*/namespace.yaml; do
  case $file in */kustomization.yaml) continue ;; esac
  # --strict: an unknown field is a misspelled one.
  "$state/kubernetes/venv/bin/kubernetes-validate" --strict --quiet "$file"
done
passed "the manifests are valid for Kubernetes ${kubernetes_validate_version%.*}"
if command -v kubectl >/dev/null; then
  for overlay in deploy/k8s/overlays/*/; do
    kubectl kustomize "$overlay" >"$state/overlay.yaml"
    "$state/kubernetes/venv/bin/kubernetes-validate" --strict --quiet "$state/overlay.yaml"
    passed "$overlay builds, and what it builds is valid"
  done
else
  passed 'kubectl is not installed: the overlays were not built'
fi

python_package "$state/cfn" cfn-lint==$cfn_lint_version
"$state/cfn/venv/bin/cfn-lint" deploy/aws/bucket.yaml
passed 'the CloudFormation template is valid'

promtool=$(command -v promtool || true)
if [ -z "$promtool" ] && command -v apt-get >/dev/null; then
  promtool=$state/prometheus/usr/bin/promtool
  if [ ! -x "$promtool" ]; then
    mkdir -p "$state/prometheus"
    (
      cd "$state/prometheus"
      apt-get download -qq -o APT::Sandbox::User=root prometheus 2>/dev/null || {
        { apt-get update -qq || sudo apt-get update -qq; } >&2
        apt-get download -qq -o APT::Sandbox::User=root prometheus >&2
      }
      dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb
    )
  fi
fi
[ -n "$promtool" ] || { echo 'deploy: promtool is not to be had here: the alerts were not tested' >&2; exit 1; }
"$promtool" check rules deploy/prometheus/alerts.yml >/dev/null
"$promtool" test rules deploy/prometheus/alerts.test.yml >/dev/null
passed 'the alerts fire when they shall, and only then'

if command -v systemd-analyze >/dev/null; then
  units=$(mktemp -d)
  trap 'rm -rf "$units"' EXIT
  for unit in deploy/systemd/*; do
    # It looks whether the program is there.
    sed 's,/usr/bin/spillbox ,/bin/true ,' "$unit" >"$units/$(basename "$unit")"
  done
  said=$(systemd-analyze verify "$units"/* 2>&1) || { echo "$said" >&2; exit 1; }
  # What it ignores (a misspelled key, say) it only says.
  [ -z "$said" ] || { echo "$said" >&2; exit 1; }
  passed 'the units are valid'
else
  passed 'systemd-analyze is not installed: the units were not verified'
fi
