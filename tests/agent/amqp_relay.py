"""An independent client of AMQP (pika), run in a node's network: takes messages from one exchange to another.

Arguments: broker's address, exchange to take from, exchange to say to, how many. Says "ready", then one line
of JSON a message.
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
