# Makes DEVICE, an end of WireGuard tunnels, by the kernel if it has WireGuard, else by wireguard-go, and holds it until it is ended.
# DIR/tunnels.conf is its configuration, DIR/subnets what it routes into the tunnels; what DIR/before keeps is set again at the end.
set -u
refuse() {
  echo "vnet: $1"
  exit 1
}
family() { case "$1" in *:*) echo -6 ;; *) echo -4 ;; esac; }
program=
end() {
  while read -r route; do ip $(family "$route") route replace $route proto static; done <"$DIR/before"
  ip link del dev "$DEVICE" 2>/dev/null
  [ -z "$program" ] || kill "$program" 2>/dev/null
  exit 0
}

by="the kernel"
if ! ip link add dev "$DEVICE" type wireguard 2>/dev/null; then
  by=wireguard-go
  [ -c /dev/net/tun ] || refuse "this kernel has neither WireGuard (CONFIG_WIREGUARD) nor tun devices (CONFIG_TUN), which wireguard-go needs"
  WG_I_PREFER_BUGGY_USERSPACE_TO_POLISHED_KMOD=1 LOG_LEVEL=error wireguard-go -f "$DEVICE" >"$DIR/wireguard-go.log" 2>&1 &
  program=$!
  tries=0
  until ip link show dev "$DEVICE" >/dev/null 2>&1 && wg show "$DEVICE" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -le 100 ] && kill -0 "$program" 2>/dev/null || refuse "wireguard-go made no $DEVICE: $(tail -n 1 "$DIR/wireguard-go.log")"
    sleep 0.05
  done
fi
wg setconf "$DEVICE" "$DIR/tunnels.conf" || refuse "wg refuses the configuration"
ip addr add "$ADDRESS" dev "$DEVICE" && ip link set dev "$DEVICE" mtu "$MTU" up || refuse "the device takes no address"
: >"$DIR/before"
while read -r net; do
  ip "$(family "$net")" route show "$net" proto static >>"$DIR/before"
  ip "$(family "$net")" route replace "$net" dev "$DEVICE" proto static || refuse "no route to $net"
done <"$DIR/subnets"
found=$(wg show "$DEVICE" peers | wc -l)
[ "$found" = "$PEERS" ] || refuse "the device has $found of $PEERS peers"
trap end TERM
echo "vnet: $DEVICE by $by"
echo "vnet: ready"
while :; do
  sleep 1000000 &
  wait
done
