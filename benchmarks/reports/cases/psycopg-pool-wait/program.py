"""Twelve jobs share two connections of a pool of psycopg, and some of them give up waiting."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time

from psycopg_pool import AsyncConnectionPool, PoolTimeout


class Server(threading.Thread):
    """In place of PostgreSQL: lets everybody in, and sleeps a second for each query."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]

    def run(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        ready = message(b"Z", b"I")
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            stream.read(struct.unpack("!i", stream.read(4))[0] - 4)
            settings = [b"server_version\x0016.4\0", b"client_encoding\0UTF8\0", b"standard_conforming_strings\0on\0"]
            hello = message(b"R", struct.pack("!i", 0))
            hello += b"".join(message(b"S", setting) for setting in settings)
            connection.sendall(hello + message(b"K", struct.pack("!ii", 1, 2)) + ready)
            while (kind := stream.read(1)) not in {b"", b"X"}:
                stream.read(struct.unpack("!i", stream.read(4))[0] - 4)
                if kind == b"Q":
                    time.sleep(1)
                    column = b"pg_sleep\0" + struct.pack("!ihihih", 0, 0, 2278, 4, -1, 0)
                    rows = message(b"T", struct.pack("!h", 1) + column)
                    rows += message(b"D", struct.pack("!hi", 1, 0)) + message(b"C", b"SELECT 1\0")
                    connection.sendall(rows + ready)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", 4 + len(body)) + body


async def job(pool: AsyncConnectionPool, number: int) -> str:
    try:
        async with pool.connection() as connection, connection.cursor() as cursor:
            await cursor.execute("select pg_sleep(1)")
    except PoolTimeout as error:
        return f"job {number}: {error}"
    return f"job {number}: done"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(address: str) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    options = {"autocommit": True}
    async with AsyncConnectionPool(address, kwargs=options, min_size=2, max_size=2, timeout=2.5, open=False) as pool:
        await pool.wait()
        await asyncio.sleep(1)
        for line in await asyncio.gather(*(job(pool, number) for number in range(12))):
            print(line)
        await asyncio.sleep(0.5)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    server = Server()
    server.start()
    asyncio.run(main(f"host=127.0.0.1 port={server.port} dbname=test user=me sslmode=disable gssencmode=disable"))
