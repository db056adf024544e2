"""Runs a Mininet script with a recorder in Mininet's place, and prints the network that it builds as JSON.

The recorder runs in a process of its own, in a sandbox, and imports nothing of vNET. It makes no network
and runs no command, neither on nodes nor on the machine.
"""
