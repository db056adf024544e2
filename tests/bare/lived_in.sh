#!/usr/bin/env bash
# Runs the goldens and the tests of Ansible and doctor in a lived-in Debian: the bare one (root.sh) with web servers, a database, fonts and
# more installed, and their units enabled. No other software may change their results. Needs root. TESTS selects other tests.
#
# lived_in.sh [TARGET...]           runs make targets in the bare one first, so that it is set up; CI does this
# lived_in.sh --instead TARGET...   runs make targets in the lived-in one instead of these tests: `--instead demo test` takes half an hour
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/root.sh"
packages="systemd-sysv nginx apache2 postgresql imagemagick fonts-noto-core fonts-lmodern fonts-texgyre python3-numpy hicolor-icon-theme"
units="nginx apache2 postgresql"

lived_in() { # DIR TARGET...
  local unit before=0 status=0 instead=
  root=$1
  shift
  furnish
  if [ "${1:-}" = --instead ]; then shift; instead=$*; set --; fi
  [ $# -eq 0 ] || targets "$@" || before=$?
  say "installing $packages"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # a chroot has nothing that starts daemons
  chmod 755 "$root/usr/sbin/policy-rc.d"
  in_root sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y $packages >/dev/null"
  for unit in $units; do
    [ -e "$root/etc/systemd/system/multi-user.target.wants/$unit.service" ] || in_root systemctl --quiet enable "$unit"
  done
  if [ -n "$instead" ]; then
    targets $instead || status=$?
  else
    in_root make --no-print-directory -C "$project" kernel
    in_root sh -c "cd $project && images/packages.sh chaos &&
      tests/run.sh .venv/bin/python --dist loadfile -n $(nproc) ${TESTS:-tests/goldens tests/ansible tests/doctor}" || status=$?
  fi
  say "lived-in root: $([ $status -eq 0 ] && echo passed || echo "FAILED with status $status")"
  return $((before ? before : status))
}

if [ "${1:-}" = --inside ]; then shift; lived_in "$@"
else
  export CACHED=yes
  require
  temporary
  prepare
  enter "$here/lived_in.sh" --inside "$root" "$@"
fi
