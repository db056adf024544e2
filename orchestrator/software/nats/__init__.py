"""Checks and plans the NATS server and its client, which speaks the native protocol."""
