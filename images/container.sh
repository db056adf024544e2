#!/usr/bin/env bash
# container.sh DIST: makes DIST/vnet-VERSION.oci.tar, an image file for container runtimes, from the Debian package in DIST: buildah puts
# the package, a broker and the lab kernel into a Debian made by debootstrap. It uses no image registry; needs root.
set -euo pipefail
dist=$(realpath "${1:?directory with the Debian package}")
tree=$(cd "$(dirname "$0")/.." && pwd)
. "$tree/tests/bare/root.sh" # a root of debootstrap, and how apt is set up here
fail() { echo "container: $*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "a root of debootstrap needs root: run as root"
package=$(echo "$dist"/vnet_*.deb)
[ -f "$package" ] || fail "$dist: not one package of ours; run make deb"
for tool in buildah debootstrap; do command -v $tool >/dev/null || fail "$tool: not installed; apt-get install $tool"; done
version=$(dpkg-deb -f "$package" Version)
kernel=$("$tree/.venv/bin/python" -c 'from orchestrator.kernel.virtual.kernel import VirtualKernel as K; b = K().binary; print(b.path if b else "")')
[ -n "$kernel" ] || fail "the lab's own kernel is not built; run make kernel"

work=$(mktemp -d /var/tmp/vnet-container.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
make_root "$root"
configure "$root"
cp "$package" "$root/vnet.deb"
install -D -m 755 "$kernel" "$root/opt/vnet/lab-kernel/linux"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # nothing is started in a chroot
chmod 755 "$root/usr/sbin/policy-rc.d"
echo "container: the package and what it needs"
unshare --mount --pid --fork --kill-child sh -euc '
  mount -t proc proc "$1/proc"
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
  chroot "$1" apt-get -qq update
  chroot "$1" apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends /vnet.deb mosquitto libzmq5 procps >/dev/null' sh "$root"
chroot "$root" useradd --create-home --uid 1000 vnet
# The image contains neither this machine's package sources nor apt's caches.
rm -rf "$root"/vnet.deb "$root"/usr/sbin/policy-rc.d "$root"/etc/apt/apt.conf.d/90machine "$root"/etc/apt/sources.list \
  "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log "$root"/var/log/apt \
  "$root"/etc/pip.conf "$root"/root/.config "$root"/root/.cargo "$root"/etc/resolv.conf "$root"/etc/hosts "$root"/dev/*
chroot "$root" update-ca-certificates --fresh >/dev/null 2>&1 || true

store=(buildah --storage-driver vfs --root "$work/store" --runroot "$work/run")
echo "container: buildah"
container=$("${store[@]}" from scratch)
cp -a "$root/." "$("${store[@]}" mount "$container")/" # `buildah add` would make root the owner of all files
"${store[@]}" umount "$container" >/dev/null
"${store[@]}" config --entrypoint '["vnet"]' --cmd doctor --user vnet --workingdir /home/vnet \
  --env VNET_UML_KERNEL=/opt/vnet/lab-kernel/linux --env VNET_STATE_DIR=/tmp/vnet --env LANG=C.UTF-8 \
  --label org.opencontainers.image.title=vnet --label "org.opencontainers.image.version=$version" "$container"
rm -f "$dist/vnet-$version.oci.tar"
"${store[@]}" commit --quiet --format oci --disable-compression=false "$container" "oci-archive:$dist/vnet-$version.oci.tar:vnet:$version" >/dev/null
ls -sh "$dist/vnet-$version.oci.tar"
"$tree/.venv/bin/python" "$tree/images/sbom.py" image "$dist/vnet-$version.oci.tar" "$root"
