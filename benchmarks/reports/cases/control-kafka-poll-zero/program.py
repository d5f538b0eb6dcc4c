"""A FastAPI service passes every order on to Kafka, and polls the producer in the same coroutine."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import httpx
import uvicorn
from confluent_kafka import Message, Producer
from fastapi import FastAPI

app = FastAPI()
delivered: list[int] = []


class OrderProducer:
    def __init__(self, settings: dict[str, object]) -> None:
        self._producer = Producer(settings)

    def produce(self, topic: str, order: int) -> None:
        self._producer.produce(topic, json.dumps({"order": order}), on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            delivered.append(message.offset())

    def close(self) -> int:
        return self._producer.flush(10)


@app.post("/orders/{number}")
async def place_order(number: int) -> dict[str, int]:
    app.state.producer.produce("orders", number)
    return {"number": number}


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    # The mock cluster of librdkafka stands for the brokers.
    app.state.producer = OrderProducer(
        {"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "test.mock.broker.rtt": 300}
    )
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=10
    ) as client:
        await client.post("/orders/0")
        late: list[float] = []
        beats = asyncio.create_task(heartbeat(late))
        for number in range(1, 31):
            await client.post(f"/orders/{number}")
            await asyncio.sleep(0.1)
        beats.cancel()
    server.should_exit = True
    await serving
    left = await asyncio.to_thread(app.state.producer.close)
    print(f"{len(delivered)} orders delivered, {left} left")
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
