#!/usr/bin/env bash
# The nested machine of `make test-hil`, a server with ssh. OUT: the directory for its results.
#   machine.sh up OUT              builds it, boots it with this tree, a disposable disk and OUT; returns when it answers
#   machine.sh run OUT COMMAND...  runs a command in it, with its output and status
#   machine.sh check OUT [FILE...] copies the present tree into it, then runs these tests (default: all of tests/hil)
#   machine.sh down OUT            ends it, whatever it does
# LIMIT: seconds until it ends anyway, MEM: its MiB, NICE: its niceness, APPEND: more kernel parameters.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
verb=${1:?up, run, check or down} out=$(realpath -m "${2:?where the results go}")
shift 2
state=$out/machine  # a link to its disk, keys and pid, which end with it
BOOT_S=180

fail() { echo "test-hil: $*" >&2; exit 1; }
inside() { ssh -F "$state/ssh_config" nested "$@"; }
alive() { # whether its process runs, and not another one with the same pid
  local pid
  pid=$(cat "$state/pid" 2>/dev/null) && grep -qaF "$(readlink "$state")/project.img" "/proc/$pid/cmdline" 2>/dev/null
}

keys() { # the server's and the client's keys for this boot; its disk carries them
  mkdir -p "$work/project/ssh"
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/key"
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/project/ssh/host_key"
  cp "$work/key.pub" "$work/project/ssh/authorized"
  echo "[127.0.0.1]:$port $(cat "$work/project/ssh/host_key.pub")" >"$work/known_hosts"
  printf '%s\n' 'Host nested' ' HostName 127.0.0.1' " Port $port" ' User root' ' LogLevel ERROR' ' BatchMode yes' \
    ' ConnectTimeout 60' ' IdentitiesOnly yes' " IdentityFile $work/key" " UserKnownHostsFile $work/known_hosts" \
    ' ControlMaster auto' " ControlPath $work/ssh" ' ControlPersist 30' >"$work/ssh_config"
}

boot() { # runs QEMU until LIMIT; its console goes to OUT
  local machine=$1 qemu=$1/qemu/usr
  export QEMU_MODULE_DIR=$qemu/lib/x86_64-linux-gnu/qemu
  # no_timer_check: on a busy host the emulated timer is too late for the kernel's test of it.
  # tsc=reliable: all emulated processors share one TSC, but the kernel reports it as unsynchronised; then every reading of the clock exits to the HPET.
  # The NIC: both functions in one slot (x-pcie-ari-nextfn), each in an IOMMU group of its own; its ports meet in one hub: the
  # cable. Two old NICs behind one bridge share a group. manage carries the default route and the ssh session.
  timeout -k 5 "${LIMIT:-2400}" nice -n "${NICE:-5}" "$qemu/bin/qemu-system-x86_64" -L "$qemu/share/qemu" -L "$qemu/share/seabios" -L /usr/share/qemu \
    -machine q35 -accel tcg,thread=multi,tb-size=512 -cpu max -smp 2 -m "${MEM:-1792}" \
    -nodefaults -no-user-config -display none -no-reboot -monitor none \
    -device intel-iommu,intremap=on \
    -drive "file=$machine/root.img,format=raw,if=none,id=root,snapshot=on" -device virtio-blk-pci,drive=root \
    -drive "file=$work/project.img,format=raw,if=none,id=project,cache=unsafe" -device virtio-blk-pci,drive=project \
    -fsdev "local,id=out,path=$out,security_model=none" -device virtio-9p-pci,fsdev=out,mount_tag=out \
    -netdev "user,id=manage,net=192.0.2.0/24,host=192.0.2.1,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:$port-192.0.2.2:22" \
    -device e1000e,netdev=manage,mac=52:54:00:12:00:01,romfile= \
    -device pcie-root-port,id=rp1,chassis=1,slot=1 \
    -netdev hubport,id=a,hubid=7 -netdev hubport,id=b,hubid=7 \
    -device igb,bus=rp1,addr=0.0,multifunction=on,x-pcie-ari-nextfn-1=on,netdev=a,mac=52:54:00:12:00:0a,romfile= \
    -device igb,bus=rp1,addr=0.1,multifunction=on,x-pcie-ari-nextfn-1=on,netdev=b,mac=52:54:00:12:00:0b,romfile= \
    -device pcie-pci-bridge,id=old -netdev hubport,id=c,hubid=8 -netdev hubport,id=d,hubid=8 \
    -device e1000,bus=old,addr=1,netdev=c,mac=52:54:00:12:00:0c,romfile= \
    -device e1000,bus=old,addr=2,netdev=d,mac=52:54:00:12:00:0d,romfile= \
    -kernel "$machine/vmlinux" -initrd "$machine/initrd.gz" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check tsc=reliable intel_iommu=on iommu=pt ${APPEND:-}" \
    -serial "file:$out/console.log" >"$out/qemu.log" 2>&1 </dev/null &
  echo $! >"$work/pid"
}

up() {
  [ ! -e "$state" ] || fail "$state: a machine is or was there; \`$0 down $out\` ends it"
  [ -z "$(ls -A "$out" 2>/dev/null)" ] || [ -e "$out/console.log" ] || fail "$out: is not of an earlier run; name another directory"
  local machine port work
  machine=$("$here/build.sh")
  rm -rf "$out"; mkdir -p "$out"
  work=$(mktemp -d)
  ln -s "$work" "$state"
  port=$("$root/.venv/bin/python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$here/payload.sh" "$work/project" >&2
  keys
  mke2fs -q -F -t ext4 -O ^has_journal -d "$work/project" "$work/project.img" "$(($(du -sm "$work/project" | cut -f1) * 5 / 4 + 64))M" >/dev/null
  rm -rf "$work/project"
  boot "$machine"
  local began=$SECONDS
  until grep -qa '^HIL: ready' "$out/console.log" 2>/dev/null; do
    alive || { cat "$out/qemu.log" >&2; tail -n 20 "$out/console.log" >&2; fail "the machine has ended before it was up"; }
    [ $((SECONDS - began)) -lt "$BOOT_S" ] || { tail -n 20 "$out/console.log" >&2; fail "the machine was not up within $BOOT_S s"; }
    sleep 0.5
  done
  inside true || fail "the machine is up but does not answer"
  echo "test-hil: the machine was up after $((SECONDS - began)) s"
}

check() {
  tar -C "$root" --exclude=__pycache__ -c contract orchestrator capture reports topologies tests images/hil pyproject.toml | inside tar -C /project -x
  inside /project/images/hil/checks.sh "$@"
}

down() {
  [ -e "$state" ] || return 0
  if alive; then
    timeout 30 ssh -F "$state/ssh_config" nested 'sync; umount /out; busybox poweroff -f' 2>/dev/null || true
    ssh -F "$state/ssh_config" -O exit nested 2>/dev/null || true
    kill "$(cat "$state/pid")" 2>/dev/null || true
    while alive; do sleep 0.1; done  # timeout kills it 5 s later
  fi
  rm -rf "$(readlink "$state")"
  rm "$state"
}

case $verb in
  up) up ;;
  run) inside "$@" ;;
  check) check "$@" ;;
  down) down ;;
  *) fail "$verb: up, run, check or down" ;;
esac
