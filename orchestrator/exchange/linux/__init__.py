"""What commands of Linux do to a machine's network: its interfaces, addresses, routes, bridges and queues."""
