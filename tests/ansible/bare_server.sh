#!/bin/sh
# Simulates a bare server for Ansible: a copy of this machine's file system in memory, without its processes.
# Runs in mount, PID and UTS namespaces of its own; prints "ready" and then only sleeps.
set -eu
place=$1/bare
mkdir "$place"
mount -t tmpfs none "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" none "$place/root"
cd "$place/root"
mount -t proc none proc
# The copy has this machine's kernel and so its settings, so no program in the copy may change them.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t tmpfs none run
mount -t tmpfs none dev
for device in null zero random urandom; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
mkdir dev/shm
rm -f usr/sbin/policy-rc.d etc/resolv.conf
cat /etc/resolv.conf >etc/resolv.conf
rm -f etc/sysctl.d/60-vnet.conf etc/security/limits.d/60-vnet.conf etc/modules-load.d/vnet.conf
rm -rf etc/default/grub.d
mkdir -p etc/default
printf 'GRUB_CMDLINE_LINUX="quiet"\n' >etc/default/grub
# frr starts with the server; mosquitto is not installed at first.
chroot . dpkg --purge mosquitto >/dev/null 2>&1
chroot . systemctl --quiet enable frr
# The script prints "ready" only when its root directory is the copy: before that, /proc/PID/root is the machine's
# root.
exec chroot . sh -c 'echo ready; exec sleep infinity'
