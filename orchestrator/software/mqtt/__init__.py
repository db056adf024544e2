"""The MQTT client: spoken by the node's agent, every message accounted for."""
