"""Checks and plans ZeroMQ: a ROUTER with its DEALERs, a PUB with its SUBs, over TCP or reliable multicast
(PGM).
"""
