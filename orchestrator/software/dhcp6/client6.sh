# Takes the IPv6 address from DEVICE and asks a DHCPv6 server for one (RFC 8415), until it is ended.
# What DEVICE had of planned routes is kept in DIR/routes, which leased6.sh sets again with each lease.
set -u
ip -6 route show dev "$DEVICE" proto static >"$DIR/routes" || exit 1
: >"$DIR/dhclient.conf"
client=
trap 'kill $client 2>/dev/null; exit 0' TERM INT
while :; do
  while read -r route; do ip -6 route del $route dev "$DEVICE" proto static 2>/dev/null; done <"$DIR/routes"
  ip -6 addr flush dev "$DEVICE" scope global || exit 1
  # -D LL: an identifier of the hardware address alone, by which the server knows the client.
  dhclient -6 -d -D LL -cf "$DIR/dhclient.conf" -lf "$PWD/$DIR/leases" -pf "$PWD/$DIR/pid" -sf "$PWD/$DIR/leased6.sh" \
    -e PLANNED="$PLANNED" -e ROUTES="$PWD/$DIR/routes" "$DEVICE" &
  client=$!
  wait $client
  # dhclient 4.4.3 ends with "Impossible condition at dhc6.c" if it would ask again at the moment in which its lease ends.
  echo "vnet: the client ended with status $?, without a lease, and begins again"
  sleep 1
done
