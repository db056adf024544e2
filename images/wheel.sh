#!/usr/bin/env bash
# wheel.sh DIST: the wheel with agent and reducer into DIST, and its bill of materials. The same tree gives the same bytes, whatever the
# umask and the hour: from a copy with plain modes, with the time of the last commit in it.
set -euo pipefail
dist=$(mkdir -p "${1:?directory for the wheel}" && realpath "$1")
cd "$(dirname "$0")/.."
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y pyproject.toml)}
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What setup.py reads; not what lies about in a tree that is worked in.
tar -c --exclude=__pycache__ --exclude='*.egg-info' setup.py pyproject.toml contract orchestrator capture reports vnet topologies \
  images/packages.sh images/kernel images/guest images/agent/src target/release/vnet-agent target/release/vnet-reduce |
  tar -x -C "$work" --no-same-permissions --no-same-owner
chmod -R u+rwX,go=rX "$work"
rm -f "$dist"/vnet_testbed-*.whl "$dist"/vnet_testbed-*.whl.cdx.json
.venv/bin/pip wheel --quiet --no-deps --no-build-isolation --no-cache-dir -w "$dist" "$work"
.venv/bin/python images/sbom.py wheel "$dist"/vnet_testbed-*.whl
