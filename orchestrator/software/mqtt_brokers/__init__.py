"""Checks and plans MQTT brokers that Debian does not have, one module each; `built` has what they share."""
