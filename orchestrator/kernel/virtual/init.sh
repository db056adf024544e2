#!/bin/sh
# First process of a lab in virtual time: builds the root the lab sees, all of it at paths that are the same for every
# run, user and machine, and hands over to guest.py. Started as `sh /proc/self/cwd/init.sh`: /proc/self is the
# host's, seen through hostfs, so the working directory of the kernel's own process on the host, in which
# orchestrator/kernel/virtual/kernel.py has laid out
#   init.sh settings (PYTHON, IMAGES: shell assignments) run (the run directory) code agent guest.py supervised.json images
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
stage=/proc/self/cwd

die() {
    # The line the owner looks for on the console; then stop the kernel by ending process 1.
    echo "vnet-boot: failed: $1" >&2
    exit 1
}

host_mount() { # DIRECTORY POINT
    mount -t hostfs -o "$1" none "$2" 2>/dev/null || mount -t hostfs -o "hostfs=$1" none "$2" ||
        die "mount the host directory $1 at $2"
}

. "$stage/settings" || die "read the settings"
mount -t tmpfs -o size=90%,mode=755 none /run || die "mount a tmpfs on /run"
mkdir /run/upper /run/work /run/root
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work none /run/root || die "mount the overlay"

cd /run/root
mkdir -p proc sys dev run tmp vnet/stage vnet/run vnet/code
mount -t proc none proc
mount -t sysfs none sys
mount -t devtmpfs none dev
mkdir -p dev/pts dev/shm
mount -t devpts -o mode=620,ptmxmode=666 none dev/pts
mount -t tmpfs -o mode=1777 none dev/shm
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=1777 none tmp
mount -t cgroup2 none sys/fs/cgroup || die "mount cgroup2"
# The trailing dot lets the host resolve the links that the stage is made of.
host_mount "$stage/." vnet/stage
host_mount "$stage/run/." vnet/run
host_mount "$stage/code/." vnet/code
if [ -n "${IMAGES:-}" ]; then # unpacked container images
    mkdir vnet/images
    host_mount "$stage/images/." vnet/images
fi

mkdir run/oldroot
pivot_root . run/oldroot || die "pivot_root"
cd /
umount -l /run/oldroot
# Whatever else the machine asks for its users (a directory, systemd) is no input of a lab.
printf '%s: files\n' passwd group shadow hosts >/etc/nsswitch.conf || die "write /etc/nsswitch.conf"

for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
# Results reach the host within a second of lab time, for the progress display and in case the lab is ended.
echo 100 >/proc/sys/vm/dirty_writeback_centisecs
echo 100 >/proc/sys/vm/dirty_expire_centisecs
# What a kernel shares among all namespaces, for as many nodes as memory holds: SHARED of kernel/uml/init.py.
for threshold in /proc/sys/net/ipv[46]/neigh/default/gc_thresh[123]; do
    echo 1048576 >"$threshold"
done
echo 4194304 >/proc/sys/kernel/pid_max
echo 65536 >/proc/sys/fs/inotify/max_user_instances
ip link set lo up
ulimit -n 65536
hostname vnet-lab
exec </dev/null
# A file by itself: importing it from our code would read directories, and so take time that depends on their number.
exec env -i "$PYTHON" -I -S -B /vnet/stage/guest.py /vnet/stage/supervised.json
