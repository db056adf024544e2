# Sets the NAT rules of DIR/rules.nft in its node's kernel, reads them back, and holds them until it is ended.
# Its log has the rules with what each has counted, at the end. Of a connection, only the first packet meets a rule of NAT.
set -u

refuse() {
  echo "vnet: $1"
  exit 1
}
set_timeout() { # NAME SECONDS: of the node's connection tracking
  printf '%s\n' "$2" >"/proc/sys/net/netfilter/nf_conntrack_$1" || refuse "this kernel does not take the timeout $1"
  [ "$(cat "/proc/sys/net/netfilter/nf_conntrack_$1")" = "$2" ] || refuse "the kernel has another timeout $1 than $2 s"
}
end() {
  nft list table ip "$TABLE"
  nft delete table ip "$TABLE"
  exit 0
}

nft -f "$DIR/rules.nft" ||
  refuse "this kernel refuses the rules of NAT: it needs nf_tables with NAT (CONFIG_NF_TABLES_IPV4, CONFIG_NFT_NAT; modprobe nft_chain_nat). The lab kernel has them: write --kernel uml or --time virtual"
found=$(nft list table ip "$TABLE" | grep -c "comment \"$MARK")
[ "$found" = "$RULES" ] || refuse "the kernel has $found of the $RULES rules"
if [ -n "${UDP_TIMEOUT-}" ]; then
  set_timeout udp_timeout "$UDP_TIMEOUT"
  set_timeout udp_timeout_stream "$UDP_TIMEOUT"
fi
if [ -n "${TCP_TIMEOUT-}" ]; then set_timeout tcp_timeout_established "$TCP_TIMEOUT"; fi
trap end TERM
echo "vnet: ready"
while :; do
  sleep 1000000 &
  wait
done
