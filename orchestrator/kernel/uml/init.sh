#!/bin/sh
# First process of a User-Mode Linux lab: builds the root the lab sees and hands over to the supervisor.
# The kernel's root is the host's / through hostfs, read only; the lab gets an overlay of it, so that writes to
# /etc and the like stay in the guest's memory. Started by orchestrator/kernel/uml/kernel.py as
#   sh init.sh SETTINGS
# where SETTINGS is a file of shell assignments (the kernel's command line is too short for paths):
#   RUN_DIR (writable host directory), GUEST_STATE, MODULES (directory or empty), PYTHON, CODE, SUPERVISED (a JSON file)
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
settings=$1

die() {
    # The line the host looks for on the console; then stop the kernel by ending process 1.
    echo "vnet-boot: failed: $1" >&2
    exit 1
}

host_mount() { # DIRECTORY POINT [ro]
    mount -t hostfs -o "$1" none "$2" 2>/dev/null || mount -t hostfs -o "hostfs=$1" none "$2" ||
        die "mount the host directory $1 at $2"
    [ $# -lt 3 ] || mount -o remount,ro,bind "$2" || die "make $2 read only"
}

# --- in the host's own root: only /run may be covered; SETTINGS may lie there, so it is read first ---
. "$settings" || die "read $settings"
mount -t tmpfs -o size=90%,mode=755 none /run || die "mount a tmpfs on /run"
mkdir /run/upper /run/work /run/root
# Debian's kernel has overlay as a module, needed before there is a /lib/modules to load it from.
if [ -n "$MODULES" ] && [ -e "$MODULES/kernel/fs/overlayfs/overlay.ko" ]; then
    insmod "$MODULES/kernel/fs/overlayfs/overlay.ko" || die "load overlay.ko from $MODULES"
fi
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work none /run/root || die "mount the overlay"

# --- the lab's root ---
cd /run/root
mkdir -p proc sys dev run tmp host
mount -t proc none proc
mount -t sysfs none sys
mount -t devtmpfs none dev
mkdir -p dev/pts dev/shm
mount -t devpts -o mode=620,ptmxmode=666 none dev/pts
mount -t tmpfs -o mode=1777 none dev/shm
mount -t tmpfs -o mode=755 none run
mount -t tmpfs -o mode=1777 none tmp
mount -t cgroup2 none sys/fs/cgroup || die "mount cgroup2"
host_mount / host ro
mkdir -p "./$RUN_DIR" "./$GUEST_STATE"
host_mount "$RUN_DIR" "./$RUN_DIR"
if [ -n "$MODULES" ]; then
    mkdir -p lib/modules
    ln -sfn "$MODULES" "lib/modules/$(uname -r)"
fi

mkdir run/oldroot
pivot_root . run/oldroot || die "pivot_root"
cd /
umount -l /run/oldroot
# Whatever else the machine asks for its users (a directory, systemd) is no input of a lab.
printf '%s: files\n' passwd group shadow hosts >/etc/nsswitch.conf || die "write /etc/nsswitch.conf"

# --- settings of the lab's kernel ---
if [ -n "$MODULES" ]; then
    modprobe -a bridge veth dummy ifb sch_netem sch_htb sch_tbf sch_prio sch_red sch_sfq sch_fq_codel sch_ingress \
        cls_u32 cls_matchall cls_flower cls_basic act_mirred act_gact act_police || die "load modules from $MODULES"
fi
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
# Results reach the host within a second or two, so that a killed lab loses no more than that.
echo 100 >/proc/sys/vm/dirty_writeback_centisecs
echo 100 >/proc/sys/vm/dirty_expire_centisecs
ip link set lo up
ulimit -n 65536
hostname vnet-lab
exec </dev/null
cd /
PYTHONPATH=/host$CODE exec "/host$PYTHON" -S -s -m orchestrator.kernel.uml.guest "/host$SUPERVISED"
