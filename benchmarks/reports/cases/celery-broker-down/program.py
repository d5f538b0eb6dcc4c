"""A service saves notes and hands a refresh of the summary to Celery, while Redis is away."""

from __future__ import annotations

import asyncio
import socket
import time

from celery import Celery


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


REDIS = f"redis://127.0.0.1:{closed_port()}"
queue = Celery("notes", broker=f"{REDIS}/0", backend=f"{REDIS}/1")
queue.conf.result_backend_transport_options = {"retry_policy": {"timeout": 5.0}}
notes: dict[int, str] = {}


def ask_for_refresh(number: int) -> None:
    try:
        queue.send_task("notes.refresh_summary", args=[number])
    except Exception as error:
        print(f"refresh of {number} not queued: {type(error).__name__}")


async def save_note(number: int, text: str) -> str:
    notes[number] = text
    ask_for_refresh(number)
    return f"saved {number}"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = (await reader.readline()).decode().split(maxsplit=2)
    if request[0] == "PUT":
        answer = await save_note(int(request[1]), request[2])
    else:
        answer = "pong"
    writer.write(answer.encode() + b"\n")
    await writer.drain()
    writer.close()


async def ask(port: int, line: str) -> None:
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line.encode() + b"\n")
    answer = (await reader.readline()).decode().strip()
    writer.close()
    print(f"{answer} after {time.perf_counter() - began:.1f} s")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.3)
    saving = asyncio.create_task(ask(port, "PUT 7 call the plumber"))
    await asyncio.sleep(0.05)
    await ask(port, "PING")
    await saving
    await asyncio.sleep(0.3)
    beats.cancel()
    server.close()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
