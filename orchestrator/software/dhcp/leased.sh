#!/bin/sh
# Called by udhcpc with what has happened to its lease: sets the node's address and routes, or takes them away.
set -u
case "$1" in
deconfig) ip -4 addr flush dev "$interface" ;;
bound | renew)
  if [ "$ip/$mask" != "$PLANNED" ]; then
    echo "vnet: the server gives $ip/$mask, and the plan has $PLANNED: another server answered"
    exit 1
  fi
  if [ "$1" = bound ]; then
    ip -4 addr replace "$ip/$mask" broadcast + dev "$interface" || exit 1
    while read -r route; do ip -4 route replace $route proto static dev "$interface" || exit 1; done <"$DIR/routes"
  fi
  # A server that begins again may name another router.
  if [ -n "${router-}" ] && ! ip -4 route show default via "${router%% *}" dev "$interface" | grep -q .; then
    ip -4 route replace default via "${router%% *}" proto static dev "$interface" || exit 1
  fi
  echo "vnet: $1 $ip/$mask for $lease s by ${serverid-?}${router:+, router $router}${dns:+, name server $dns}"
  echo "vnet: ready"
  ;;
*) echo "vnet: $1" ;;
esac
