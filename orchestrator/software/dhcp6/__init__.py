"""Plans DHCPv6 (RFC 8415): a real server (dnsmasq), and real clients (ISC's dhclient) that get their IPv6
addresses from it.
"""
