"""Finds the machine's NICs, resolves the NIC that a topology names, refuses unsuitable ones, and gives them
back after use.

The package uses only the standard library, since the lab process loads it, and imports nothing of the lab.
"""
