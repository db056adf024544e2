# FRR's daemons of one node, in the foreground. All that they write is in DIR, below the node's own directory; what their code has fixed
# places for (/run/frr, /var/tmp/frr) they find empty and theirs alone, since this shell has mounts of its own.
# Says "vnet: routes are there" when they are: to each subnet of DIR/routes, and of OSPF at the costs of DIR/costs.
set -u
for place in /var/tmp /run; do
  mount -t tmpfs -o mode=0755 tmpfs "$place" || { echo "vnet: mounts of its own are refused here"; exit 1; }
done
chown frr:frr "$DIR" || exit 1
rm -f "$DIR/ended"
: >"$DIR/vtysh.conf"
trap '' TERM # the daemons take it, this shell ends when they have

ask() { vtysh --vty_socket "$DIR" --config_dir "$DIR" "$@"; }
leave() { wait; exit 1; }
run() {
  "/usr/lib/frr/$1" -u frr -g frr --log stdout -f /dev/null -i "$DIR/$1.pid" -z "$DIR/zserv.api" --vty_socket "$DIR" -P 0
  echo "vnet: $1 ended with status $?"
  : >"$DIR/ended"
  kill 0 # one of them alone is no router
}

for daemon in $DAEMONS; do # zebra first: the others look for it once in ten seconds
  run "$daemon" &
  until ask -d "$daemon" -c 'show version' >/dev/null 2>&1; do
    [ ! -e "$DIR/ended" ] || leave
    sleep 0.02
  done
done
if ! ask -b; then
  echo "vnet: the configuration above is refused"
  kill 0
  leave
fi

# Each of these is some ten processes, which a lab kernel makes slowly: rarely, and the second only when the first is content.
lacking() {
  if ip -4 route show | cut -d ' ' -f 1 | grep -vxFf - "$DIR/routes"; then return; fi
  [ ! -s "$DIR/costs" ] || ask -d ospfd -c 'show ip ospf route' 2>/dev/null | sed -n 's/^N *\([^ ]*\) *\(\[[0-9]*\]\).*/\1 \2/p' | grep -vxFf - "$DIR/costs"
}
said=-
until found=$(lacking); [ -z "$found" ]; do
  [ ! -e "$DIR/ended" ] || leave
  [ "$found" = "$said" ] || echo "vnet: waits for" $found
  said=$found
  sleep 0.5
done
echo "vnet: routes are there"
wait
[ ! -e "$DIR/ended" ]
