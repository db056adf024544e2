#!/usr/bin/env bash
# Builds the nested machine of `make test-hil` and prints its directory; cached by the hash of what it is made of.
#
# The machine is Debian with its full kernel (the cloud one has no igb), libvirt, QEMU and Python, in one disk image; beside it
# lies the QEMU that runs it: the one of backports, whose igb is the dual-port 82576 (Debian 12's own has none), unpacked, not
# installed. Needs root, apt and a Debian mirror (the machine's own); no KVM.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vnet/hil
suite=bookworm
# what images/packages.sh names for virtual machines, and what a server has
packages=$("$here/../packages.sh" --list vm | paste -sd,),iproute2,iputils-ping,ethtool,kmod,pciutils,busybox-static,python3,mosquitto,libzmq5,tcpdump,procps,openssh-server
# NICs, passthrough, KVM, and everything that a lab in the host's own kernel asks for
modules="igb igbvf e1000e e1000 vfio-pci vhost_net kvm-amd tun bridge veth 8021q ifb vxlan dummy 9p 9pnet_virtio sch_netem sch_htb sch_tbf sch_prio sch_red
sch_sfq sch_fq_codel sch_cake sch_ingress cls_matchall cls_u32 act_gact act_mirred"

fail() { echo "test-hil: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || fail "the nested machine's root file system is made by debootstrap: run as root"
release=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: linux-image-//p' | head -1)
[ -n "$release" ] || fail "apt knows no linux-image-amd64: run apt-get update"
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(RELEASE)' 'Created-By: Packages' | awk -v s="$suite" '$2 == "Debian" && $3 == s { print $1; exit }')
[ -n "$mirror" ] || fail "apt's sources name no Debian mirror with $suite: add one to /etc/apt/sources.list.d"

hash=$(cat "$here"/build.sh "$here"/initrd-init <(echo "$release $packages") | sha256sum | cut -c1-16)
done_dir=$cache/$hash
[ -e "$done_dir/root.img" ] && { echo "$done_dir"; exit 0; }
mkdir -p "$cache"
work=$(mktemp -d "$cache/build-XXXXXX")
log=$cache/build.log
trap 'rm -rf "$work"' EXIT
step() { echo "test-hil: [$SECONDS s] $*" >&2; }

quiet() { "$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "failed: $*; the whole log is $log"; }; }

fetch() { # into debs/: the kernel from the machine's own sources, QEMU from the same mirror's backports
  mkdir -p debs apt/lists/partial apt/cache/archives/partial
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite-backports main" >backports.list
  local backports=(-o Dir::Etc::SourceList="$work/backports.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root)
  quiet apt-get "${backports[@]}" update
  cd debs
  quiet apt-get -o APT::Sandbox::User=root download "linux-image-$release"
  for package in qemu-system-x86 qemu-system-common qemu-system-data seabios; do
    quiet apt-get "${backports[@]}" download "$package/$suite-backports"
  done
  cd ..
  dpkg -x debs/linux-image-*.deb kernel
  for package in debs/qemu-*.deb debs/seabios*.deb; do dpkg -x "$package" qemu; done
  depmod -b kernel "$release"
}

copy_modules() { # TO LIST MODULE...: the modules and what they need, LIST in the order of loading
  local to=$1 list=$2 module file; shift 2
  mkdir -p "$to"; : >"$list"
  for module in "$@"; do
    modprobe -d "$work/kernel" -S "$release" --show-depends "$module" | awk '$1 == "insmod" { print $2 }' | while read -r file; do
      grep -qx "${file##*/}" "$list" || { cp "$file" "$to/"; echo "${file##*/}" >>"$list"; }
    done
  done
}

make_initrd() {
  mkdir -p initrd/{bin,dev,proc,sys,mnt,etc,lib}
  cp /usr/bin/busybox initrd/bin/
  copy_modules initrd/lib/modules initrd/etc/modlist virtio_pci virtio_blk ext4
  install -m755 "$here/initrd-init" initrd/init
  (cd initrd && find . | cpio -o -H newc --quiet | gzip -1) >initrd.gz
}

unpack_kernel() { # the bare vmlinux boots faster under emulation than the compressed one
  python3 -c 'import lzma, sys
image = open(sys.argv[1], "rb").read()
open(sys.argv[2], "wb").write(lzma.LZMADecompressor().decompress(image[image.find(b"\xfd7zXZ\0"):]))' \
    "kernel/boot/vmlinuz-$release" vmlinux
}

make_root() {
  quiet debootstrap --variant=minbase --include="$packages" "$suite" root "$mirror"
  rm -rf root/var/cache/apt/archives/*.deb root/var/lib/apt/lists/* root/usr/share/{doc,man,locale}
  local lib=root/lib/modules/$release
  mkdir -p "$lib" root/{hil,project,out}
  cp kernel/lib/modules/"$release"/modules.{order,builtin,builtin.modinfo} "$lib/"
  # shellcheck disable=SC2086  # a list of words
  copy_modules "$lib/kernel" loaded $modules
  depmod -b root "$release"
  # What runs in it is on the second disk, so that it may change without a new build
  printf '%s\n' '#!/bin/bash' 'mount /dev/vdb /project' 'exec /project/images/hil/machine-init' >root/hil/init
  chmod 755 root/hil/init
  cp "kernel/boot/vmlinuz-$release" root/boot/; cp vmlinux root/hil/
  printf 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin\n' >>root/etc/passwd
  printf 'libvirt-qemu:x:64055:\n' >>root/etc/group
  sed -i /^kvm:/d root/etc/group; echo 'kvm:x:106:libvirt-qemu' >>root/etc/group
  echo '127.0.0.1 localhost hil' >root/etc/hosts
  quiet mke2fs -q -F -t ext4 -d root root.img 2G
}

: >"$log"
cd "$work"
step "the nested machine is built once (about two minutes)"
fetch; step "packages"
make_initrd; unpack_kernel
make_root; step "root file system"
rm -rf debs apt root kernel initrd backports.list loaded
chmod 755 "$work"
[ -e "$done_dir" ] || mv "$work" "$done_dir"
step "done: $done_dir"
echo "$done_dir"
