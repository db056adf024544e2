#!/bin/sh
# Makes the machine look lived in for one command: lived_in.sh TREE COMMAND...
# In a mount namespace of its own (unshare --mount --uts), /etc, /usr, /var and /opt get the files of TREE, and the
# loader's cache knows its libraries. TREE/proc/meminfo replaces the kernel's file.
set -eu
tree=$1
shift
mount --make-rprivate /
mount -t tmpfs none "$tree/over"
for top in etc usr var opt; do
  mkdir "$tree/over/$top" "$tree/over/$top.work"
  mount -t overlay -o "lowerdir=/$top,upperdir=$tree/over/$top,workdir=$tree/over/$top.work" none "/$top"
  cp -a "$tree/$top/." "/$top/"
done
cat "$tree/status" >>/var/lib/dpkg/status
ldconfig
mount --bind "$tree/meminfo" /proc/meminfo
hostname lived-in
exec "$@"
