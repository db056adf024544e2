"""Describes stateless autoconfiguration (RFC 4862): a router that advertises a prefix, and hosts that take an
address of it.
"""
