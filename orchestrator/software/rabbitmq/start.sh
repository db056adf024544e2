# Starts RabbitMQ in the foreground of its node: all that it reads and writes is in DIR, below the node's own directory.
set -eu
here=$PWD/$DIR
server=/usr/lib/rabbitmq/bin/rabbitmq-server # the one in sbin takes no users but root and rabbitmq
[ -x "$server" ] || { echo "vnet: $server is missing; install Debian's rabbitmq-server"; exit 1; }
# No system's settings, and none of whoever started the lab.
export HOME="$here" RABBITMQ_CONF_ENV_FILE="$here/none" RABBITMQ_NODENAME=rabbit@localhost
export RABBITMQ_CONFIG_FILE="$here/rabbitmq.config" RABBITMQ_ENABLED_PLUGINS_FILE="$here/plugins"
export RABBITMQ_MNESIA_BASE="$here/data" RABBITMQ_LOG_BASE="$here/log" RABBITMQ_PID_FILE="$here/pid"
export RABBITMQ_LOGS=- RABBITMQ_LOG="$LEVEL"
# The Erlang machine takes this shell's place, so that signals reach it; start.erl runs before the server (-s rabbit boot).
export RUNNING_UNDER_SYSTEMD=1 RABBITMQ_NODE_ONLY=1
# One scheduler of each kind: less memory. Named from its first moment, or the server would start another Erlang machine
# that starts epmd, a daemon which finds the nodes of a cluster: there is none.
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +SDcpu 1:1 +SDio 1 +A 1 -sname rabbit@localhost -start_epmd false -erl_epmd_port 25672 \
 -eval {ok,_}=file:script(\"$DIR/start.erl\") -s rabbit boot"
exec "$server"
