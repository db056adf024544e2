"""Describes routers that translate addresses (NAT) with the kernel's nf_tables."""
