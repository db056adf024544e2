#!/bin/busybox sh
# First program of the machine that other_cpu.py emulates: mounts the outer machine's files, read only, under a tmpfs; runs
# share/command there; then powers off.
b=/bin/busybox
$b mkdir -p /proc /sys /dev /lower /top /whole
$b mount -t proc none /proc
while read -r module; do $b insmod "/modules/$module"; done </modules/list
nine=trans=virtio,version=9p2000.L,msize=524288
$b mount -t 9p -o "$nine,ro,cache=loose" machine /lower
$b mount -t tmpfs none /top
$b mkdir /top/upper /top/work /top/upper/share
$b mount -t overlay -o lowerdir=/lower,upperdir=/top/upper,workdir=/top/work none /whole
$b mount -t 9p -o "$nine" share /whole/share
$b mount -t proc none /whole/proc
$b mount -t sysfs none /whole/sys
$b mount -t devtmpfs none /whole/dev
$b mkdir -p /whole/dev/shm /whole/dev/pts
$b mount -t tmpfs -o mode=1777 none /whole/dev/shm
$b mount -t devpts none /whole/dev/pts
$b mount -t tmpfs none /whole/run
$b cp /proc/cpuinfo /whole/share/cpuinfo
$b chroot /whole /bin/sh /share/command
$b sync
$b poweroff -f
