"""Plans DHCP: a real server (dnsmasq), and real clients (udhcpc) that get their addresses from it."""
