"""Relays messages from one AMQP exchange to another, with pika as an independent client in a node's network.

Arguments: the broker's address, the exchange to consume from, the exchange to publish to, the number of
messages. Prints "ready", then one line of JSON for each message.
"""

from __future__ import annotations

import json
import sys

import pika


def main() -> None:
    address, source, target, count = sys.argv[1:]
    left = int(count)
    connection = pika.BlockingConnection(pika.ConnectionParameters(address, heartbeat=0))
    channel = connection.channel()
    channel.confirm_delivery()
    for exchange in (source, target):
        channel.exchange_declare(exchange, "topic", durable=True)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, source, "#")
    print("ready", flush=True)
    for method, properties, body in channel.consume(queue):
        told = {"key": method.routing_key, "mode": properties.delivery_mode, "bytes": len(body)}
        print(json.dumps(told | {"redelivered": method.redelivered}), flush=True)
        channel.basic_publish(target, method.routing_key, body)
        channel.basic_ack(method.delivery_tag)
        left -= 1
        if left == 0:
            break
    connection.close()


if __name__ == "__main__":
    main()
