"""Checks and plans the AMQP 0-9-1 client, which the node's agent runs and whose messages are all recorded."""
