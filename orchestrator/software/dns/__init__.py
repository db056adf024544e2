"""Describes name servers (dnsmasq): names of the topology's own, and questions passed on to another."""
