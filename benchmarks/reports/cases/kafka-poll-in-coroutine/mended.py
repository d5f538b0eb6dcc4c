"""A worker takes orders from Kafka in a thread, and answers health checks on the same loop."""

from __future__ import annotations

import asyncio
import json
import threading
import time

from confluent_kafka import Consumer, Producer


def start_cluster() -> tuple[Producer, str]:
    """The mock cluster of librdkafka stands for the brokers."""
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1})
    cluster = producer.list_topics("orders", timeout=10)
    broker = next(iter(cluster.brokers.values()))
    return producer, f"{broker.host}:{broker.port}"


def place_orders(producer: Producer) -> None:
    """Another service places an order now and then."""
    for number in range(4):
        producer.produce("orders", json.dumps({"order": number}))
        producer.flush(5)
        threading.Event().wait(1.7)


async def consume(consumer: Consumer) -> None:
    consumer.subscribe(["orders"])
    while True:
        message = await asyncio.to_thread(consumer.poll, timeout=1.0)
        if message is not None and message.error() is None:
            print("order", json.loads(message.value())["order"])
        await asyncio.sleep(0)


async def answer_health(_reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(producer: Producer, consumer: Consumer) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    health = await asyncio.start_server(answer_health, "127.0.0.1", 0)
    await asyncio.sleep(0.2)
    consuming = asyncio.create_task(consume(consumer))
    await asyncio.to_thread(place_orders, producer)
    consuming.cancel()
    beats.cancel()
    health.close()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    producer, servers = start_cluster()
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "billing", "auto.offset.reset": "earliest"}
    )
    asyncio.run(main(producer, consumer))
    consumer.close()
