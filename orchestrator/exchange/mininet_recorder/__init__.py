"""Runs a script of Mininet with a recorder in Mininet's place, and prints the network that it builds as JSON.

It starts in a process of its own, in a sandbox, and imports nothing of ours. It makes no network and runs no
command, on nodes or on the machine.
"""
