"""A home automation hub on asyncio connects to the makers' brokers of two cars with paho-mqtt."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time

import paho.mqtt.client as mqtt
import trustme

AUTHORITY = trustme.CA()


class FarBroker(threading.Thread):
    """Stands for the maker's broker: it takes its time until it greets."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        AUTHORITY.issue_cert("localhost").configure_cert(self.context)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self) -> None:
        while True:
            visitor, _ = self.listener.accept()
            threading.Thread(target=self.talk, args=(visitor,), daemon=True).start()

    def talk(self, visitor: socket.socket) -> None:
        time.sleep(1.2)
        with self.context.wrap_socket(visitor, server_side=True) as secure:
            secure.recv(1024)
            secure.sendall(b"\x20\x02\x00\x00")
            while secure.recv(1024):
                pass


class Car:
    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.online = asyncio.Event()
        loop = asyncio.get_running_loop()
        context = ssl.create_default_context()
        AUTHORITY.configure_trust(context)
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name)
        self.client.tls_set_context(context)
        self.client.on_connect = lambda *_: loop.call_soon_threadsafe(self.online.set)

    async def connect_mqtt(self) -> None:
        try:
            self.client.connect("localhost", self.port, keepalive=30)
        except OSError as error:
            print(f"{self.name}: no broker: {error}")
            return
        self.client.loop_start()
        await asyncio.wait_for(self.online.wait(), 5)
        print(f"{self.name} is connected")

    def close(self) -> None:
        self.client.disconnect()


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    broker = FarBroker()
    broker.start()
    cars = [Car("blue", broker.port), Car("red", broker.port)]
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.3)
    for car in cars:
        await car.connect_mqtt()
        await asyncio.sleep(0.3)
    for car in cars:
        car.close()
    await asyncio.sleep(0.3)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
