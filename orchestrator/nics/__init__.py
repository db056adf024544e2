"""Finds the machine's NICs, resolves the NIC that a topology names, refuses unsuitable ones, and gives them
back after use.

Uses the standard library only, since the lab process loads it. Nothing here imports the lab.
"""
