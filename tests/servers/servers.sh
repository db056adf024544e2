#!/usr/bin/env bash
# Emulates three bare servers (build.sh) by QEMU: lab1, lab2, lab3 at 10.1.0.1 to 3; DIR/ssh_config reaches them by ssh.
#   servers.sh up DIR        makes and boots them from bare disks; returns when all answer. LIMIT: seconds until each is ended anyway
#   servers.sh on DIR NAME   powers one on;  servers.sh off DIR NAME  powers one off at once: no program ends in order
#   servers.sh down DIR      powers all off and removes their disks
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
verb=${1:?up, on, off or down} dir=$(realpath -m "${2:?directory of the servers}")
fail() { echo "servers: $*" >&2; exit 1; }

alive() { # NAME: its process, not one that has got its number since
  local pid
  pid=$(cat "$dir/$1.pid" 2>/dev/null) && grep -qaF "$dir/$1.qcow2" "/proc/$pid/cmdline" 2>/dev/null
}

on() { # NAME: one QEMU. The network between: a hub in lab1 with a wire to each of the others, which are sockets of files
  local name=$1 number=${1#lab} wires=() other
  local card=52:54:00:20 forward
  forward=hostfwd=tcp:127.0.0.1:$(cat "$dir/$name.port")-:22
  if [ "$number" = 1 ]; then
    forward+=,hostfwd=tcp:127.0.0.1:$(cat "$dir/scheduler.port")-:8786
    wires=(-netdev hubport,id=between,hubid=1)
    for other in 2 3; do
      wires+=(-netdev "dgram,id=w$other,local.type=unix,local.path=$dir/1-$other,remote.type=unix,remote.path=$dir/$other-1"
        -netdev "hubport,id=h$other,hubid=1,netdev=w$other")
    done
  else wires=(-netdev "dgram,id=between,local.type=unix,local.path=$dir/$number-1,remote.type=unix,remote.path=$dir/1-$number")
  fi
  timeout -k 5 "${LIMIT:-14400}" qemu-system-x86_64 -machine q35 -accel tcg,thread=multi,tb-size=512 -cpu max -smp 1 -m 2048 \
    -nodefaults -no-user-config -display none -monitor none -no-reboot \
    -drive "file=$dir/$name.qcow2,if=none,id=root,cache=unsafe" -device virtio-blk-pci,drive=root \
    -netdev "user,id=out,ipv6=off,hostname=$name,$forward" -device "virtio-net-pci,netdev=out,mac=$card:01:0$number,romfile=" \
    "${wires[@]}" -device "virtio-net-pci,netdev=between,mac=$card:02:0$number,romfile=" \
    -kernel "$(cat "$dir/image")/vmlinuz" -initrd "$(cat "$dir/image")/initrd" \
    -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off no_timer_check tsc=reliable systemd.hostname=$name" \
    -serial "file:$dir/$name.console" >"$dir/$name.qemu" 2>&1 </dev/null &
  echo $! >"$dir/$name.pid"
}

answers() { # NAME
  local began=$SECONDS
  until ssh -F "$dir/ssh_config" "$1" true 2>/dev/null; do
    alive "$1" || { cat "$dir/$1.qemu" >&2; tail -n 20 "$dir/$1.console" >&2; fail "$1 has ended before it was up"; }
    [ $((SECONDS - began)) -lt 600 ] || { tail -n 20 "$dir/$1.console" >&2; fail "$1 does not answer"; }
    sleep 1
  done
}

off() { # NAME
  ! alive "$1" || kill "$(cat "$dir/$1.pid")"
  while alive "$1"; do sleep 0.1; done # timeout kills it 5 s later
}

free_port() { python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])'; }

up() {
  local image name
  [ ! -e "$dir" ] || fail "$dir: is there; \`$0 down $dir\` ends servers and removes it"
  image=$("$here/build.sh")
  mkdir -p "$dir"
  echo "$image" >"$dir/image"
  free_port >"$dir/scheduler.port"
  for name in lab1 lab2 lab3; do
    free_port >"$dir/$name.port"
    qemu-img create -q -f qcow2 -F raw -b "$image/root.img" "$dir/$name.qcow2"
    echo "[127.0.0.1]:$(cat "$dir/$name.port") $(cat "$image/host.pub")" >>"$dir/known_hosts"
    printf '%s\n' "Host $name" ' HostName 127.0.0.1' " Port $(cat "$dir/$name.port")"
  done >"$dir/ssh_config"
  printf '%s\n' 'Host *' ' User root' ' BatchMode yes' ' LogLevel ERROR' ' ConnectTimeout 60' ' IdentitiesOnly yes' \
    " IdentityFile $image/key" " UserKnownHostsFile $dir/known_hosts" >>"$dir/ssh_config"
  for name in lab1 lab2 lab3; do on "$name"; done
  for name in lab1 lab2 lab3; do answers "$name"; done
}

down() {
  local name
  for name in lab1 lab2 lab3; do off "$name"; done
  rm -rf "$dir"
}

case $verb in
  up) up ;;
  on) ! alive "${3:?which}" || fail "$3: is on"; on "$3"; answers "$3" ;;
  off) off "${3:?which}" ;;
  down) [ -e "$dir/image" ] || fail "$dir: no servers are there"; down ;;
  *) fail "$verb: up, on, off or down" ;;
esac
