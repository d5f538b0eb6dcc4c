"""A client sends the speech of a file to a recogniser over a websocket, piece by piece, and waits for each answer."""

from __future__ import annotations

import array
import asyncio
import io
import math
import threading
import time
import wave

from websockets.asyncio.client import connect
from websockets.sync.server import ServerConnection, serve

RATE = 8000


def record_speech() -> io.BytesIO:
    file = io.BytesIO()
    samples = array.array("h", (int(9000 * math.sin(n / 7)) for n in range(RATE * 2)))
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    file.seek(0)
    return file


def recognise(connection: ServerConnection) -> None:
    """Stands for the recogniser, which thinks long about every piece."""
    for number, _piece in enumerate(connection):
        threading.Event().wait(0.6)
        connection.send(f"word {number}")


async def send_speech(address: str, file: io.BytesIO) -> None:
    async with connect(address) as websocket:
        with wave.open(file, "rb") as sound:
            while piece := sound.readframes(RATE // 2):
                await websocket.send(piece)
                answer = await websocket.recv()
                print(answer)


async def show_progress() -> None:
    while True:
        await asyncio.sleep(0.5)
        print("still listening")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(address: str) -> None:
    file = record_speech()
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    progress = asyncio.create_task(show_progress())
    await asyncio.sleep(0.2)
    await send_speech(address, file)
    progress.cancel()
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with serve(recognise, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asyncio.run(main(f"ws://127.0.0.1:{server.socket.getsockname()[1]}"))
        server.shutdown()
