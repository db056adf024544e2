#!/usr/bin/env bash
# Installs the Debian package and the wheel in a bare Debian (root.sh) and uses them there, as root and as an ordinary user.
#
# fresh.sh [--keep DIR] TARGET...: then runs the make targets in a clone of the last commit, as both. Prints a table of results; status 1 if a
# step failed. Copies the lab kernel there (vnet images export), for machines whose own kernel has no netem. Needs root.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/root.sh"
tree=$(cd "$here/../.." && pwd)
user=alice kernel=/srv/carried/lab-kernel.tar.gz

stage() { # DIR: what is carried into the root
  rm -rf "$1/srv/carried"
  mkdir -p "$1/srv/carried"
  cp "$tree"/dist/*.whl "$tree"/dist/*.deb "$here/used.sh" "$1/srv/carried/"
  "$tree/.venv/bin/vnet" images export lab-kernel "$1$kernel"
}

step() { # NAME COMMAND...
  local name=$1 began=$SECONDS
  shift
  echo "test-fresh: $name"
  if "$@"; then results+=("$(printf '%-24s passed  %4d s' "$name" $((SECONDS - began)))")
  else results+=("$(printf '%-24s FAILED  %4d s' "$name" $((SECONDS - began)))") status=1; fi
}

as() { # ACCOUNT COMMAND: by a shell in the root
  local home=/root path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rust/bin
  [ "$1" = root ] || home=/home/$1
  chroot "$root" setpriv --reuid "$1" --regid "$1" --init-groups env -i "HOME=$home" "PATH=$path" LANG=C.UTF-8 \
    "${registries[@]}" bash -euc "cd; umask 022; $2"
}

accounts() {
  chroot "$root" id "$user" >/dev/null 2>&1 || chroot "$root" useradd --create-home --shell /bin/bash "$user"
  local file
  for file in .config/pip/pip.conf .cargo/config.toml; do
    [ ! -f "$root/root/$file" ] || install -D -m 644 "$root/root/$file" "$root/home/$user/$file"
  done
  chroot "$root" chown -R "$user:$user" "/home/$user"
}

fresh() { # DIR TARGET...
  local target account registries status=0 results=() install="apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends"
  root=$1
  shift
  furnish
  mapfile -t registries < <(registries)
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # a chroot has nothing that starts daemons
  chmod 755 "$root/usr/sbin/policy-rc.d"
  as root "export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && $install mosquitto util-linux >/dev/null"
  accounts
  step "deb: install" as root "export DEBIAN_FRONTEND=noninteractive; $install /srv/carried/vnet_*.deb >/dev/null"
  for account in root "$user"; do step "deb: use, $account" as "$account" "bash /srv/carried/used.sh vnet $kernel"; done
  step "deb: remove" as root "apt-get -qq purge -y vnet >/dev/null; ! [ -e /opt/vnet ] && ! [ -e /usr/bin/vnet ]"
  step "wheel: needs" as root "export DEBIAN_FRONTEND=noninteractive; $install python3-venv pipx iproute2 iputils-ping kmod tcpdump >/dev/null"
  step "wheel: pip, root" as root "rm -rf v; python3 -m venv v && v/bin/pip -q install /srv/carried/*.whl && bash /srv/carried/used.sh ~/v/bin/vnet $kernel"
  step "wheel: pipx, $user" as "$user" "pipx install --force /srv/carried/*.whl >/dev/null && bash /srv/carried/used.sh ~/.local/bin/vnet $kernel"
  for target in "$@"; do
    step "make $target, root" as root "make --no-print-directory -C $project $target"
    rm -rf "$root/home/$user/vnet"
    cp -a "$root$project" "$root/home/$user/vnet"
    rm -rf "$root/home/$user/vnet/.venv" "$root/home/$user/vnet/target"
    chroot "$root" chown -R "$user:$user" "/home/$user/vnet"
    step "make $target, $user" as "$user" "make --no-print-directory -C vnet $target"
  done
  printf 'test-fresh: %s\n' "${results[@]}"
  return $status
}

fresh_main() {
  place=
  if [ "${1:-}" = --keep ]; then place=${2:?where the root is kept}; shift 2; fi
  [ "$(id -u)" -eq 0 ] || fail "a root of debootstrap, and its mounts, need root: run as root"
  command -v debootstrap >/dev/null || fail "debootstrap: not installed; apt-get install debootstrap"
  if [ -n "$place" ]; then mkdir -p "$place"
  else
    place=$(mktemp -d /var/tmp/vnet-fresh.XXXXXX)
    trap 'rm -rf --one-file-system "$place"' EXIT
  fi
  root=$(realpath "$place")/root
  [ -d "$root" ] || make_root "$root"
  configure "$root"
  clone "$root"
  stage "$root"
  enter "$here/fresh.sh" --inside "$root" "$@"
}

if [ "${1:-}" = --inside ]; then shift; fresh "$@"; else fresh_main "$@"; fi
