# Takes the IPv6 address and default route from DEVICE, asks for an advertisement (RFC 4861), and says what it got until it is ended.
# The host's part of the address is that of the plan (a token, ip-token(8)), so that the address is the planned one if the prefix is.
set -u
conf=/proc/sys/net/ipv6/conf/$DEVICE
ip -6 route show default dev "$DEVICE" proto static >"$DIR/routes" || exit 1
while read -r route; do ip -6 route del $route dev "$DEVICE" proto static || exit 1; done <"$DIR/routes"
ip -6 addr flush dev "$DEVICE" scope global || exit 1
echo 1 >"$conf/accept_ra" && echo 1 >"$conf/autoconf" && echo 3 >"$conf/router_solicitations" || exit 1
ip token set "$TOKEN" dev "$DEVICE" || exit 1 # and asks, as a host that comes up does
said=- pause=0.2
while :; do
  got=$(ip -6 -o addr show dev "$DEVICE" scope global dynamic | sed -n 's/.* inet6 \([^ ]*\) .*/\1/p')
  via=$(ip -6 route show default dev "$DEVICE" proto ra | sed -n 's/.* via \([^ ]*\) .*/\1/p' | head -n 1)
  if [ "$said" != "$got $via" ]; then
    said="$got $via"
    if [ -z "$got" ] || [ -z "$via" ]; then
      echo "vnet: has ${got:-no address}, ${via:-no router}"
    elif [ "$got" != "$PLANNED" ]; then
      echo "vnet: the advertised prefix makes $got, and the plan has $PLANNED: another router advertises"
      exit 1
    else
      echo "vnet: took $got, router $via"
      echo "vnet: ready"
      pause=5
    fi
  fi
  sleep $pause
done
