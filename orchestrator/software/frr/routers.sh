# FRR's daemons of one node, in the foreground. All that they write is in DIR, below the node's own directory; what their code has fixed
# places for (/run/frr, /var/tmp/frr) is in the node's own /run and /var/tmp, which are no other node's.
# Says "vnet: routes are there" when they are: to each subnet of DIR/routes, and of OSPF at the costs of DIR/costs and, of IPv6, DIR/costs6.
set -u
chown frr:frr "$DIR" || exit 1
rm -f "$DIR/ended" "$DIR"/*.vty
echo 'username root nopassword' >"$DIR/vtysh.conf" # no PAM, which a virtual machine has not; vtysh says nothing of that and does nothing
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
  until [ -S "$DIR/$daemon.vty" ]; do # the last thing that it opens
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
  if { ip -4 route show; ip -6 route show; } | cut -d ' ' -f 1 | grep -vxFf - "$DIR/routes"; then return; fi
  if [ -s "$DIR/costs6" ]; then
    ask -d zebra -c 'show ipv6 route ospf6' 2>/dev/null | sed -n 's,^O[^ ]* *\([^ ]*\) \[110/\([0-9]*\)\].*,\1 [\2],p' | grep -vxFf - "$DIR/costs6" && return
  fi
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
