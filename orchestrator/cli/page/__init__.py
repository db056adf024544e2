"""The live page of `vnet serve`: labs and runs in a browser, from control sockets and runs' files."""
