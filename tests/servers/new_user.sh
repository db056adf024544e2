#!/usr/bin/env bash
# Follows docs/many-machines.md as a new user does, from three bare servers (servers.sh) to a lab across them and a campaign over all of
# them. new_user.sh DIR: prints a table of results; if a step fails, the status is 1 and all files stay in DIR.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$here/../.." && pwd)
dir=$(realpath -m "${1:?directory for servers and results}")
servers=$dir/servers vnet=$tree/.venv/bin/vnet results=() status=0
export VNET_SSH="ssh -F $servers/ssh_config" ANSIBLE_SSH_ARGS="-F $servers/ssh_config -o ControlMaster=auto -o ControlPersist=60" ANSIBLE_NOCOLOR=1
export VNET_STATE_DIR=$dir/state PYTHONUNBUFFERED=1

step() { # NAME FUNCTION: in a shell of its own, which stops at what fails; not a condition, in which nothing would stop it
  local name=$1 began=$SECONDS code word=passed
  echo "test-servers: $name"
  set +e
  (set -e; cd "$dir"; "$2") >"$dir/$2.log" 2>&1
  code=$?
  set -e
  [ $code -eq 0 ] || { word=FAILED status=1; tail -n 30 "$dir/$2.log" >&2; }
  results+=("$(printf '%-44s %s  %5d s' "$name" $word $((SECONDS - began)))")
}
fails() { # FILE COMMAND...: it must; what it says is in FILE
  local file=$1
  shift
  ! "$@" >"$file" 2>&1 || { echo "did not fail: $*" >&2; return 1; }
}

on() { ssh -F "$servers/ssh_config" "$@"; }
each() { # COMMAND: on all at once; it fails where one does
  local name pid pids=()
  for name in lab1 lab2 lab3; do on "$name" "$@" & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid"; done
}
has() { grep -qF -- "$1" "$2" || { echo "not said: $1" >&2; cat "$2" >&2; return 1; }; }
nothing_left() { # on the named servers: namespaces, tunnels, parts of labs
  local name left
  for name in "$@"; do
    left=$(on "$name" 'ls /run/netns 2>/dev/null; ip -o link show type vxlan; pgrep -a vnet-agent; pgrep -fa "[s]pread.part"' || true)
    [ -z "$left" ] || { echo "left on $name: $left" >&2; return 1; }
  done
}

boot() { "$here/servers.sh" up "$servers"; }

inventory() {
  mkdir -p inventory
  cat >inventory/hosts.yml <<'HOSTS'
lab_hosts:
  hosts:
    lab1: {ansible_user: root, vnet_address: 10.1.0.1}
    lab2: {ansible_user: root, vnet_address: 10.1.0.2}
    lab3: {ansible_user: root, vnet_address: 10.1.0.3}
HOSTS
  "$vnet" doctor --hosts all >before # light nodes can be had
  has 'not here: qemu-system-x86_64' before
  "$tree/.venv/bin/ansible-playbook" -i inventory/hosts.yml "$tree/playbooks/host.yml"
}

again() { # nothing is changed
  "$tree/.venv/bin/ansible-playbook" -i inventory/hosts.yml "$tree/playbooks/host.yml" | tee second
  [ "$(grep -c 'changed=0 .*failed=0' second)" -eq 3 ]
}

doctor() { # all is there but an IOMMU, for which a server is started again
  "$vnet" doctor --hosts all >after || [ $? -eq 4 ]
  cat after
  local what
  for what in netem 'virtual machines' 'bridge ports'; do [ "$(grep -c "^✔ $what" after)" -eq 3 ]; done
}

lab() { # a client on each, broker and link on one
  cat >across.yaml <<'LAB'
name: across
segments: {lan: {subnet: 10.20.0.0/24}}
nodes:
  broker: {segment: lan, host: lab1, software: {mosquitto: {broker: mosquitto}}}
groups:
  client:
    count: 3
    segment: lan
    apart: true
    software:
      traffic: {mqtt: {broker: broker, publish: {topic: "from/{node}", qos: 1, rate: 5 /s, rate_of: client}, subscribe: [{topic: "from/+", qos: 1}]}}
links:
  access: {between: [broker, lan], forward: {delay: 20 ms}}
run: {connect_interval: 500 ms, hold: 10 s, drain: 10 s}
LAB
  "$vnet" plan across.yaml --hosts all
  "$vnet" run across.yaml --hosts all
  grep -qF '"state": "complete"' results/across/*/manifest.json
  "$tree/.venv/bin/python" - results/across/*/manifest.json <<'CHECK'
import json, sys
hosts = json.load(open(sys.argv[1]))["underlay"]
print(json.dumps(hosts, indent=1))
assert len(hosts) == 3, "each two of three hosts"
CHECK
  nothing_left lab1 lab2 lab3
}

package() {
  make --no-print-directory -C "$tree" deb
  "$vnet" images export lab-kernel "$dir/lab-kernel.tar.gz"
  local name
  for name in lab1 lab2 lab3; do scp -q -F "$servers/ssh_config" "$tree"/dist/vnet_*.deb lab-kernel.tar.gz "$name:"; done
  each 'DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends ./vnet_*.deb'
  each 'vnet images import lab-kernel.tar.gz'
  each 'vnet --version'
}

certificates() { # an authority of one's own, and one certificate for all
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=vnet-lab -days 30 -keyout ca.key -out ca.pem
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=lab -keyout key.pem -out lab.csr
  openssl x509 -req -in lab.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out cert.pem
  settings "$dir" >dask.yaml
  settings /etc/vnet >carried.yaml
  local name
  for name in lab1 lab2 lab3; do
    on "$name" 'mkdir -p /etc/vnet .config/dask'
    scp -q -F "$servers/ssh_config" ca.pem cert.pem key.pem "$name:/etc/vnet/"
    scp -q -F "$servers/ssh_config" carried.yaml "$name:.config/dask/distributed.yaml"
  done
  on lab1 'systemd-run --quiet --unit vnet-scheduler --setenv "HOME=$HOME" /opt/vnet/bin/dask scheduler --protocol tls --port 8786 --dashboard-address 127.0.0.1:0'
  on lab1 'until ss -lnt | grep -q :8786; do sleep 1; done'
  each 'systemd-run --quiet --unit vnet-worker --working-directory "$HOME" --setenv "HOME=$HOME" \
    /opt/vnet/bin/dask worker tls://10.1.0.1:8786 --nworkers 1 --nthreads 1 --dashboard-address 127.0.0.1:0'
  each 'until journalctl --unit vnet-worker | grep -q "Registered to"; do sleep 1; done'
}

settings() { # DIR: of Dask, as docs/many-machines.md has it
  cat <<DASK
distributed:
  worker: {profile: {enabled: false}}
  admin: {tick: {interval: 500ms}}
  comm:
    timeouts: {connect: 120s} # what starts here is emulated
    require-encryption: true
    tls:
      ca-file: $1/ca.pem
      scheduler: {cert: $1/cert.pem, key: $1/key.pem}
      worker: {cert: $1/cert.pem, key: $1/key.pem}
      client: {cert: $1/cert.pem, key: $1/key.pem}
DASK
}

campaign() { # and, while it runs, the power of one server fails
  printf 'name: spread\nseed: 1\ncampaign: {topologies: [%s], repetitions: 4}\n' "$tree/topologies/pair.yaml" >campaign.yaml
  DASK_CONFIG=$dir/dask.yaml "$vnet" campaign run campaign.yaml --time virtual -p hold=20s --out over --no-page \
    --on "tls://127.0.0.1:$(cat "$servers/scheduler.port")" >over.log 2>&1 &
  local running=$!
  until grep -q '\[[123]\] hold' over.log; do # three labs run, one on each
    kill -0 $running 2>/dev/null || { cat over.log; return 1; }
    sleep 0.5
  done
  "$here/servers.sh" off "$servers" lab3
  wait $running
  cat over.log
  [ "$(grep -c '"state": *"complete"' over/cells.jsonl)" -eq 4 ]
}

same() { # the same campaign on one of them alone: its tables are equal to the bit. Here it need not be: other programs are installed
  scp -q -F "$servers/ssh_config" "$tree/topologies/pair.yaml" lab1:
  on lab1 'systemctl stop vnet-worker vnet-scheduler
    printf "name: spread\nseed: 1\ncampaign: {topologies: [pair.yaml], repetitions: 4}\n" >campaign.yaml
    vnet campaign run campaign.yaml --time virtual -p hold=20s --out alone --no-page'
  scp -qr -F "$servers/ssh_config" lab1:alone .
  "$tree/.venv/bin/python" - over alone <<'CHECK'
import json, pathlib, sys
def runs(campaign): # the directories of complete runs by cell: one that ran twice is in its second
    lines = map(json.loads, (campaign / "cells.jsonl").open())
    return {line["cell"]: campaign / line["run_dir"] for line in lines if line["state"] == "complete"}
def tables(run):
    return {file.name: file.read_bytes() for file in run.glob("*.parquet") if file.name != "host.parquet"}
over, alone = (runs(pathlib.Path(campaign)) for campaign in sys.argv[1:])
assert len(over) == 4 and over.keys() == alone.keys(), (over, alone)
for cell, run in over.items():
    one, other = tables(run), tables(alone[cell])
    differ = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    assert "messages.parquet" in one and not differ, (cell, differ)
CHECK
}

refused() { # a host that is off; no certificate
  fails off.log "$vnet" run "$tree/topologies/pair.yaml" --hosts all --raw --results refused
  has lab3 off.log
  has 'Connection refused' off.log
  nothing_left lab1 lab2
  fails none.log "$vnet" campaign run campaign.yaml --time virtual --on "tls://127.0.0.1:$(cat "$servers/scheduler.port")" --out none
  has tls none.log
}

[ "$(id -u)" -eq 0 ] || { echo "test-servers: the servers' disk is made by debootstrap: run as root" >&2; exit 1; }
[ ! -e "$dir" ] || { echo "test-servers: $dir: is there; name another directory" >&2; exit 1; }
mkdir -p "$dir"
trap '[ ! -e "$servers/image" ] || "$here/servers.sh" down "$servers"' EXIT
step "three bare servers" boot
[ $status -eq 0 ] || exit 1
step "inventory and playbooks/host.yml" inventory
step "playbooks/host.yml again: nothing to change" again
step "vnet doctor --hosts all" doctor
step "a lab across the three" lab
step "Debian package and lab kernel on each" package
step "certificates, scheduler, workers" certificates
step "a campaign over the three, one of them lost" campaign
step "the same campaign on one: equal tables" same
step "bad input is refused" refused
printf 'test-servers: %s\n' "${results[@]}"
exit $status
