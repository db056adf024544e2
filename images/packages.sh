#!/usr/bin/env bash
# Installs the missing Debian packages of the named sets; for an ordinary user it prints the command instead.
# For playbooks/host.yml, --list SETS prints their names and --daemons PACKAGES the daemons among them, and neither installs.
set -euo pipefail

declare -A sets=(
  [run]="iproute2 iputils-ping netbase tcpdump tshark mosquitto mosquitto-clients libzmq5 user-mode-linux kmod graphviz openssh-client iperf3 frr rabbitmq-server python3-pyftpdlib dnsmasq-base nftables udhcpc isc-dhcp-client wireguard-go wireguard-tools"
  [build]="protobuf-compiler python3 python3-venv python3-dev gcc libc6-dev make pkg-config libvirt-dev"
  [vm]="libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients libxml2-utils qemu-system-x86 qemu-utils lz4 squashfs-tools"
  [debian]="debootstrap e2fsprogs qemu-utils lz4 grub-pc-bin"
  [container]="buildah debootstrap podman runc"
  [far]="openssh-server python3 python3-libvirt python3-jinja2"
  [hil]="debootstrap cpio busybox-static e2fsprogs kmod openssh-client"
  [page]="chromium prometheus"
  [chaos]="strace"
  [release]="lintian"
  [fuzz]="g++ xz-utils"
  [bench]="mininet bridge-utils procps netsniff-ng linux-perf" # Mininet's LinuxBridge calls brctl and sysctl
  [clock]="chrony linuxptp" # topologies/papers/reserve-7-clock.yaml; chrony replaces the system's time daemon, so no other set includes it
  [middleware]="maven openjdk-17-jdk-headless openjdk-17-jre-headless mosquitto nats-server prosody"
  [brokers]="nodejs npm python3 python3-pip maven openjdk-17-jre-headless dpkg-dev gcc libc6-dev make libssl-dev" # beside go and cargo, which Debian 12 has too old
  [slurm]="munge slurmctld slurmd slurm-client iproute2 util-linux"
  [services]="nginx-light postgresql redis-server wrk python3-grpcio wireguard-go wireguard-tools nghttp2-client apache2-utils hey fio" # docs/how-to: nginx-postgresql-redis, grpc, wireguard
  [kernel]="gcc-12 libc6-dev libelf-dev make flex bison bc xz-utils patch"
)

# Daemons that Debian would start at boot. Labs and tests start their own, so newly installed ones stay disabled.
declare -A daemons=(
  [mosquitto]="mosquitto.service"
  [rabbitmq-server]="rabbitmq-server.service epmd.service epmd.socket"
  [frr]="frr.service"
  [openssh-server]="ssh.service"
  [prometheus]="prometheus.service"
  [nats-server]="nats-server.service"
  [prosody]="prosody.service"
  [munge]="munge.service"
  [nginx-light]="nginx.service"
  [postgresql]="postgresql.service"
  [redis-server]="redis-server.service"
  [slurmctld]="slurmctld.service"
  [slurmd]="slurmd.service"
)
units() { # PACKAGE...
  local package
  for package in "$@"; do printf '%s\n' ${daemons[$package]:-}; done
}

case "${1:-}" in
  --list) shift; for set in "$@"; do printf '%s\n' ${sets[$set]}; done | sort -u; exit 0 ;;
  --daemons) shift; units "$@"; exit 0 ;;
esac

missing=()
for set in "$@"; do
  for package in ${sets[$set]}; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
  done
done

# QEMU runs as this account, which may open /dev/kvm; libvirt-daemon-system, which creates it, also installs a daemon.
account() {
  [[ " $sets_wanted " == *" vm "* ]] && [ "$(id -u)" -eq 0 ] || return 0
  getent passwd libvirt-qemu >/dev/null ||
    useradd --system --no-create-home --home-dir /var/lib/libvirt --shell /usr/sbin/nologin --user-group libvirt-qemu
  ! getent group kvm >/dev/null || id -nG libvirt-qemu | grep -qw kvm || usermod --append --groups kvm libvirt-qemu
}
sets_wanted="$*"
[ ${#missing[@]} -gt 0 ] || { account; exit 0; }

line="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ]; then
  printf 'setup: system packages are missing; an administrator installs them with\n  sudo %s\n' "$line" >&2
  exit 1
fi
echo "setup: $line"
log=$(mktemp) policy=
trap 'rm -f "$log" $policy' EXIT
# Keeps Debian from starting daemons at installation.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  policy=/usr/sbin/policy-rc.d
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
# Another apt may hold one of four locks (a new server upgrades itself); DPkg::Lock::Timeout waits for dpkg's lock only.
patience=${VNET_APT_WAIT:-600} # seconds
unlocked() { # COMMAND...: runs it, and retries while it fails because of a lock
  local deadline=$((SECONDS + patience)) holder said=
  until "$@" >"$log" 2>&1; do
    holder=$(sed -n 's/^E: Could not get lock \([^ ]*\)\. It is held by \(.*\)$/\1, held by \2/p; s/^E: Could not get lock \([^ ]*\) - open .*/\1/p' "$log" | head -n 1)
    if [ -z "$holder" ]; then
      tail -n 20 "$log" >&2
      echo "setup: installing packages failed; mend what apt says above and run make setup again" >&2
      return 1
    fi
    if [ $SECONDS -ge $deadline ]; then
      echo "setup: apt is still at work after $patience s: $holder; let it end (unattended upgrades: systemctl stop unattended-upgrades) and run make setup again" >&2
      return 1
    fi
    [ -n "$said" ] || echo "setup: another apt is at work ($holder); waiting for it, up to $patience s" >&2
    said=yes
    sleep 1
  done
}
unlocked apt-get update
unlocked $line
if [ -n "$(command -v systemctl)" ]; then
  for unit in $(units "${missing[@]}"); do
    [ ! -e "/lib/systemd/system/$unit" ] || systemctl --quiet disable "$unit"
  done
fi
account
