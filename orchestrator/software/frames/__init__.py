"""Checks and plans the test of a path by RFC 2544: trials that the lab carries out between two interfaces."""
