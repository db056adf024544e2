"""Checks and plans the MQTT client, which the node's agent runs and whose messages are all recorded."""
