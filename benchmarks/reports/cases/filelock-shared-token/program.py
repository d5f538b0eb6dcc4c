"""Several processes of a service share one token in a file; the one that finds it old gets a new one."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
import tempfile
import time

from aiohttp import ClientSession, web
from filelock import FileLock

NEIGHBOUR = """
import pathlib, sys, threading
from filelock import FileLock

folder = pathlib.Path(sys.argv[1])
for number in range(3):
    with FileLock(folder / "token.lock"):
        print("has it", flush=True)
        threading.Event().wait(0.8)
        (folder / "token").write_text(f"token {number}")
    threading.Event().wait(0.5)
"""


def start_neighbour(folder: str) -> subprocess.Popen[str]:
    """Another process of the service, which is fetching new tokens."""
    command = [sys.executable, "-c", NEIGHBOUR, folder]
    neighbour = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    neighbour.stdout.readline()
    return neighbour


async def read_token(folder: pathlib.Path) -> str:
    with FileLock(folder / "token.lock"):
        return (folder / "token").read_text()


async def show_page(request: web.Request) -> web.Response:
    return web.Response(text=await read_token(request.app["folder"]))


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(folder: str) -> None:
    app = web.Application()
    app["folder"] = pathlib.Path(folder)
    app.router.add_get("/", show_page)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as visitor:
        async with visitor.get(address) as answer:
            print(await answer.text())
        neighbour = await asyncio.to_thread(start_neighbour, folder)
        beats = asyncio.create_task(heartbeat(late))
        while neighbour.poll() is None:
            async with visitor.get(address) as answer:
                print(await answer.text())
            await asyncio.sleep(0.3)
        beats.cancel()
    neighbour.stdout.close()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "token").write_text("old token")
        asyncio.run(main(folder))
