"""Applies Linux commands to the model of a machine: its interfaces, addresses, routes, bridges and queues."""
