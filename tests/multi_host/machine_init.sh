#!/bin/sh
# First process of a host of machines.py, in a kernel of its own: file systems, clock, network, ssh server.
#   machine_init.sh PLACE NAME CLOCK_OFF DELAY MANAGE ADDRESS ADDRESS6
# PLACE: its disk, a directory of the outer machine. CLOCK_OFF: seconds by which its clock is wrong. DELAY: the delay that its
# network card adds to sent frames, or "none". MANAGE: the address of its second card. The kernel appends arguments of its own.
set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
place=$1 name=$2 clock_off=$3 delay=$4 manage=$5 address=$6 address6=$7

# Mounts the outer machine's files as the lower layer of a file system in memory, as orchestrator/kernel/uml/init.py
# does for a lab.
mount -t proc none /proc
mount -t tmpfs -o mode=755 none /run
mkdir /run/upper /run/work /run/root
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work none /run/root
cd /run/root
mount -t proc none proc
mount -t sysfs none sys
mount -t devtmpfs none dev
mkdir -p dev/pts dev/shm
mount -t devpts -o mode=620,ptmxmode=666 none dev/pts
mount -t tmpfs none dev/shm
mount -t tmpfs -o mode=755 none run
mount -t tmpfs none tmp
mount -t cgroup2 none sys/fs/cgroup
mkdir -p ".$place" run/oldroot
mount -t hostfs -o "$place" none ".$place"
pivot_root . run/oldroot
cd /
umount -l /run/oldroot

for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
  echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
printf '%s: files\n' passwd group shadow hosts >/etc/nsswitch.conf
hostname "$name"
ulimit -n 65536
/usr/bin/python3 -S -c "import time; time.clock_settime(time.CLOCK_REALTIME, time.time() + $clock_off)"

ip link set lo up
ip link set vec0 name eth0 up
ip link set vec1 name manage up
ip address add "$manage/24" dev manage
ip address add "$address/24" dev eth0
ip address add "$address6/64" dev eth0 nodad
[ "$delay" = none ] || tc qdisc add dev eth0 root netem delay "$delay" limit 10000

mkdir -p /run/sshd /run/netns
exec /usr/sbin/sshd -D -e -f "$place/sshd_config"
