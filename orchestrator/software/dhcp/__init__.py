"""Describes DHCP: a real server (dnsmasq) and real clients (udhcpc) that take their addresses from it."""
