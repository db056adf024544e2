#!/usr/bin/env bash
# Builds what a bare server boots from and prints its directory: a Debian with its own kernel, systemd, an ssh server and Python, as an
# installer leaves it, with apt configured as this machine's. Beside it the key that it lets in. Cached by what it is made of. Root.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../bare" && pwd) # where root.sh says that it is
. "$here/root.sh"                                         # its functions: make_root, configure, fail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vnet/servers
recipe=$(realpath "${BASH_SOURCE[0]}")
packages="linux-image-amd64 initramfs-tools systemd-sysv udev dbus openssh-server python3 iproute2 iputils-ping"

fill() ( # DIR
  trap 'umount "$1/proc"' EXIT
  mount -t proc proc "$1/proc"
  printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
  chmod 755 "$1/usr/sbin/policy-rc.d"
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C
  chroot "$1" apt-get -qq update
  # shellcheck disable=SC2086  # a list of words
  chroot "$1" apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends $packages
  rm "$1/usr/sbin/policy-rc.d"
  rm -rf "$1"/var/cache/apt/archives/*.deb
)

settings() { # DIR: cards by their addresses (servers.sh): the way out, the network between the servers
  local number card=52:54:00:20 home
  for number in 1 2 3; do
    printf '[Match]\nMACAddress=%s\n[Network]\nDHCP=ipv4\n' "$card:01:0$number" >"$1/etc/systemd/network/out-$number.network"
    printf '[Match]\nMACAddress=%s\n[Network]\nAddress=10.1.0.%s/24\n' "$card:02:0$number" "$number" >"$1/etc/systemd/network/between-$number.network"
  done
  chroot "$1" systemctl --quiet enable systemd-networkd
  echo 'nameserver 10.0.2.3' >"$1/etc/resolv.conf" # QEMU's, which asks this machine's
  echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$1/etc/fstab"
  home=$(chroot "$1" getent passwd 0 | cut -d: -f6)
  install -D -m 600 key.pub "$1$home/.ssh/authorized_keys"
  : >"$1/etc/machine-id"
  rm -f "$1/etc/hostname"
}

build() {
  local made
  [ "$(id -u)" -eq 0 ] || fail "a server's root is made by debootstrap: run as root"
  made=$cache/$(cat "$recipe" "$here/root.sh" | sha256sum | cut -c1-16)
  if [ ! -e "$made" ]; then
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/build-XXXXXX")
    trap 'rm -rf --one-file-system "$work"' EXIT
    cd "$work"
    make_root "$work/root" >&2
    configure "$work/root"
    fill root >log 2>&1 || { tail -n 20 log >&2; fail "a server's packages could not be installed"; }
    ssh-keygen -q -t ed25519 -N '' -C '' -f key
    settings root
    cp root/etc/ssh/ssh_host_ed25519_key.pub host.pub
    cp root/boot/vmlinuz-* vmlinuz
    cp root/boot/initrd.img-* initrd
    mke2fs -q -F -t ext4 -d root root.img 12G >/dev/null # sparse
    rm -rf --one-file-system root log
    chmod 755 "$work"
    mv "$work" "$made"
  fi
  echo "$made"
}

build
