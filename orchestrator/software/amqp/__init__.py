"""The AMQP 0-9-1 client: spoken by the node's agent, every message accounted for."""
