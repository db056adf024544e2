# Starts vNET's agent in a machine with a disk of its own; run by cloud-init's bootcmd from the seed, at every boot.
# The agent is copied, so that the seed can be unmounted; with its own loader and libraries it runs whatever the guest has.
set -e
seed=/run/vnet/seed home=/opt/vnet port=/dev/virtio-ports/vnet.agent
mkdir -p $home
cp $seed/vnet-agent $seed/ld.so $seed/lib* $home/
chmod 755 $home/vnet-agent $home/ld.so
umount -l $seed # this very script is read from it

cat >$home/run <<RUN
#!/bin/sh
i=0
while [ ! -e $port ] && [ \$i -lt 200 ]; do sleep 0.1; i=\$((i + 1)); done
exec $home/ld.so --library-path $home $home/vnet-agent launch --port $port
RUN
chmod 755 $home/run

if [ -d /run/systemd/system ]; then
  # The machine ends with the agent, as everywhere in vNET.
  cat >/run/systemd/system/vnet-agent.service <<UNIT
[Unit]
Description=vNET agent
DefaultDependencies=no
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
ExecStart=$home/run
KillMode=mixed
TasksMax=infinity
UNIT
  systemctl daemon-reload
  systemctl start --no-block vnet-agent.service
else
  (setsid $home/run; poweroff -f) </dev/null >/run/vnet/agent.log 2>&1 &
fi
