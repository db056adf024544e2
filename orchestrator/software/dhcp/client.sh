# Takes the address from DEVICE and asks a DHCP server for one, until it is ended; then it gives the lease back.
# What DEVICE had of planned routes is kept in DIR/routes, which leased.sh sets again with each lease.
set -u
ip -4 route show dev "$DEVICE" proto static >"$DIR/routes" || exit 1
ip -4 addr flush dev "$DEVICE" || exit 1
# Three questions, a second apart, then a pause of two: a lab's server is there, and only frames that the network loses are asked for again.
exec udhcpc -f -R -t 3 -T 1 -A 2 -i "$DEVICE" -x "hostname:$NODE" -s "$PWD/$DIR/leased.sh"
