"""Plans name servers (dnsmasq): names of the topology's nodes, and queries forwarded to another server."""
