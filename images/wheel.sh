#!/usr/bin/env bash
# wheel.sh DIST: makes the wheel with agent and reducer in DIST, and its bill of materials. The same tree gives the same bytes under any
# umask and at any hour: it builds from a copy with plain modes and the time of the last commit.
set -euo pipefail
dist=$(mkdir -p "${1:?directory for the wheel}" && realpath "$1")
cd "$(dirname "$0")/.."
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y pyproject.toml)}
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Copies only the files that setup.py reads, and no others of the working tree.
tar -c --exclude=__pycache__ --exclude='*.egg-info' setup.py pyproject.toml contract orchestrator capture reports vnet topologies \
  images/packages.sh images/kernel images/guest images/agent/src target/release/vnet-agent target/release/vnet-reduce |
  tar -x -C "$work" --no-same-permissions --no-same-owner
chmod -R u+rwX,go=rX "$work"
rm -f "$dist"/vnet_testbed-*.whl "$dist"/vnet_testbed-*.whl.cdx.json
.venv/bin/pip wheel --quiet --no-deps --no-build-isolation --no-cache-dir -w "$dist" "$work"
.venv/bin/python images/sbom.py wheel "$dist"/vnet_testbed-*.whl
