#!/usr/bin/env bash
# Installs the Debian packages of the named sets that are missing; an ordinary user is told the one line instead.
set -euo pipefail

declare -A sets=(
  [run]="iproute2 iputils-ping tcpdump tshark mosquitto user-mode-linux kmod graphviz"
  [build]="python3 python3-venv gcc libc6-dev make"
  [bench]="mininet"
  [kernel]="gcc make flex bison bc libelf-dev libssl-dev xz-utils"
)

missing=()
for set in "$@"; do
  for package in ${sets[$set]}; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

line="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ]; then
  printf 'setup: system packages are missing; an administrator installs them with\n  sudo %s\n' "$line" >&2
  exit 1
fi
echo "setup: $line"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update && $line; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: installing packages failed; mend what apt says above and run make setup again" >&2
  exit 1
fi
