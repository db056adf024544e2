"""FRR: a router's OSPF and BGP, configured from the topology or by the user."""
