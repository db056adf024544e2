"""Publishes or consumes messages with pika in a node's network, and prints the CPU seconds that they took."""

from __future__ import annotations

import sys
import time

import pika

SIZE = 200


def main() -> None:
    side, address, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    connection = pika.BlockingConnection(pika.ConnectionParameters(address))
    channel = connection.channel()
    channel.exchange_declare("peer", "topic", durable=True)
    queue = channel.queue_declare("peer", durable=True).method.queue
    channel.queue_bind(queue, "peer", "#")
    properties = pika.BasicProperties(delivery_mode=2)
    began = time.process_time()
    if side == "publish":  # without confirms, for which pika's blocking connection waits after each message
        for _ in range(count):
            channel.basic_publish("peer", "k", b"x" * SIZE, properties)
    else:
        channel.basic_qos(prefetch_count=100)
        for method, _, _ in channel.consume(queue):
            channel.basic_ack(method.delivery_tag)
            count -= 1
            if count == 0:
                break
    print(time.process_time() - began)
    connection.close()


if __name__ == "__main__":
    main()
