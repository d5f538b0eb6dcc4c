"""A home automation hub on asyncio listens to a broker, which answers late, with aiomqtt."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time

import aiomqtt
import trustme

AUTHORITY = trustme.CA()


class FarBroker(threading.Thread):
    """Greets late, then sends one message to each subscriber."""

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
            while packet := secure.recv(1024):
                if packet[0] >> 4 == 1:
                    secure.sendall(b"\x20\x02\x00\x00")
                elif packet[0] >> 4 == 8:
                    secure.sendall(b"\x90\x03" + packet[2:4] + b"\x00")
                    secure.sendall(b"\x30\x0b\x00\x07car/fue42")
                elif packet[0] >> 4 == 14:
                    return


async def listen(port: int) -> None:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    began = time.perf_counter()
    async with aiomqtt.Client("localhost", port, tls_context=context, timeout=5) as client:
        print(f"connected after {time.perf_counter() - began:.1f} s")
        await client.subscribe("car/#")
        async for message in client.messages:
            print(f"{message.topic}: {message.payload!r}")
            break


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    broker = FarBroker()
    broker.start()
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    for _ in range(2):
        await asyncio.sleep(0.3)
        await listen(broker.port)
    await asyncio.sleep(0.3)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
