#!/usr/bin/env bash
# payload.sh DIR: collects what the nested machine runs: this tree's Python, its agent, and packages of the command line.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
to=$1
packages=$("$root/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# Without polars and figures: reduction and report run outside, from the resulting files.
unneeded="polars|_polars.*|scipy.*|numpy.*|vl_convert.*|altair.*|narwhals.*|lxml.*|mypy.*|.*__mypyc.*|pip.*|setuptools.*|ansible.*|cryptography.*|hypothesis.*|ruff.*|grimp.*|pyshark.*|scipy_stubs.*|.*dist-info"
mkdir -p "$to/site-packages" "$to/target/release"
for part in contract orchestrator capture reports topologies images tests pyproject.toml; do
  cp -a "$root/$part" "$to/"
done
cp "$root/target/release/vnet-agent" "$to/target/release/"
find "$packages" -mindepth 1 -maxdepth 1 -regextype posix-extended ! -regex ".*/($unneeded)" -exec cp -a -t "$to/site-packages" {} +
find "$packages" -mindepth 1 -maxdepth 1 -regextype posix-extended -regex '.*/(pytest|pluggy)[^/]*dist-info' -exec cp -a -t "$to/site-packages" {} +
find "$to" \( -name .git -o -name node_modules -o -name golden \) -prune -exec rm -rf {} +
"$root/.venv/bin/vnet" images build builtin-nic
image=$(cd "$root" && .venv/bin/python -c 'from orchestrator.images import locate; print(locate("builtin-nic").directory)')
mkdir -p "$to/cache/vnet/images" && cp -r "$image" "$to/cache/vnet/images/"
# Compiles once here, where it is fast.
"$root/.venv/bin/python" -m compileall -q -j 2 -s "$to" -p /project "$to"/{orchestrator,capture,reports,site-packages} >/dev/null || true
du -sh "$to"
