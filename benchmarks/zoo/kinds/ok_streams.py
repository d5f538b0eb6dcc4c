"""Control: an echo server and its clients, and a slow answer that is awaited."""

from __future__ import annotations

import asyncio

from zoo.stage import run

EXPECT = {"control": True}


async def echo(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.01)
        writer.write(line)
        await writer.drain()
    writer.close()


async def client(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(20):
        writer.write(b"hello\n")
        await reader.readline()
    writer.close()
    await writer.wait_closed()


async def handler():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*[client(port) for _ in range(10)])
    server.close()


if __name__ == "__main__":
    run(handler)
