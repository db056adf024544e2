#!/bin/sh
# Called by dhclient with what has happened to its lease (dhclient-script(8)): sets the node's address and routes, or takes them away.
set -u
case "$reason" in
BOUND6 | RENEW6 | REBIND6)
  # A lease has no length of prefix, which a router would advertise: it is that of the plan.
  got="$new_ip6_address/${PLANNED#*/}"
  if [ "$got" != "$PLANNED" ]; then
    echo "vnet: the server gives $got, and the plan has $PLANNED: another server answered"
    exit 1
  fi
  ip -6 addr replace "$got" dev "$interface" nodad valid_lft "$new_max_life" preferred_lft "$new_preferred_life" || exit 1
  while read -r route; do ip -6 route replace $route proto static dev "$interface" || exit 1; done <"$ROUTES"
  echo "vnet: $(echo "${reason%6}" | tr A-Z a-z) $got for $new_max_life s${new_dhcp6_name_servers:+, name server $new_dhcp6_name_servers}"
  echo "vnet: ready"
  ;;
EXPIRE6 | RELEASE6 | STOP6)
  while read -r route; do ip -6 route del $route proto static dev "$interface" 2>/dev/null; done <"$ROUTES"
  ip -6 addr del "$old_ip6_address/${PLANNED#*/}" dev "$interface" 2>/dev/null
  echo "vnet: $(echo "${reason%6}" | tr A-Z a-z) of $old_ip6_address"
  ;;
esac
