#!/bin/sh
# Runs a Slurm cluster of one node in namespaces: unshare --net --mount --pid --fork --uts --ipc --mount-proc slurm_cluster.sh DIR
# It writes only in DIR, prints "ready" when the node takes jobs, and runs until it is stopped.
set -eu
dir=$1
mkdir -p "$dir/spool" "$dir/state" "$dir/munge"
chmod 711 "$dir/munge"
hostname slurm-node
printf '127.0.0.1 localhost\n10.77.0.1 slurm-node\n' >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
ip link set lo up # beside it a network that leads nowhere: Slurm's and Dask's look-ups ask for an address that is not loopback
ip link add eth0 type veth peer name nowhere
ip address add 10.77.0.1/24 dev eth0
ip link set eth0 up
ip link set nowhere up
ip route add default via 10.77.0.254
head -c 128 /dev/urandom >"$dir/munge/key"
chmod 600 "$dir/munge/key"
cat >"$dir/slurm.conf" <<CONFIGURATION
ClusterName=vnet
SlurmctldHost=slurm-node(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
NodeName=slurm-node NodeAddr=10.77.0.1 CPUs=$(nproc) RealMemory=8000 State=UNKNOWN
PartitionName=lab Nodes=slurm-node Default=YES State=UP
CONFIGURATION
export SLURM_CONF="$dir/slurm.conf"
munged --force --foreground --socket="$dir/munge/socket" --key-file="$dir/munge/key" --log-file="$dir/munge/log" \
  --pid-file="$dir/munge/pid" --seed-file="$dir/munge/seed" >"$dir/munged.log" 2>&1 &
until [ -S "$dir/munge/socket" ]; do sleep 0.05; done
slurmctld -D >"$dir/slurmctld.log" 2>&1 &
slurmd -D -N slurm-node >"$dir/slurmd.log" 2>&1 &
until sinfo --noheader --format %t 2>/dev/null | grep -q idle; do sleep 0.2; done
echo ready
wait
