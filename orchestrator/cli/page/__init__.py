"""Serves the live page of `vnet serve`, which shows labs and runs by their control sockets and files."""
