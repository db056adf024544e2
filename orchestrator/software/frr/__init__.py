"""Checks and plans FRR: a router's OSPF and BGP, which the topology or the user configures."""
