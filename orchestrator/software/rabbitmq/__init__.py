"""Checks and plans the broker RabbitMQ: AMQP, and MQTT by its plugin, started in the foreground of
its node.
"""
