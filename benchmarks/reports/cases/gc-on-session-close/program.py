"""Each open page of a dashboard server is a session over a websocket; what a closed one held is freed at once."""

from __future__ import annotations

import asyncio
import gc
import time

from aiohttp import ClientSession, web


class Widget:
    def __init__(self, session: Session, number: int) -> None:
        self.session = session
        self.number = number


class Session:
    """What one open page holds: its widgets know it and it knows them."""

    def __init__(self, tables: list[list[list[int]]]) -> None:
        self.tables = tables
        self.widgets = [Widget(self, number) for number in range(200)]


def load_tables() -> list[list[list[int]]]:
    """The data of the application, loaded once, for all sessions."""
    return [[[row, column] for column in range(100)] for row in range(27_000)]


async def open_page(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    session = Session(request.app["tables"])
    async for message in socket:
        number = int(message.data)
        await socket.send_str(f"widget {session.widgets[number].number}")
    del session
    gc.collect()
    return socket


def make_app() -> web.Application:
    app = web.Application()
    app["tables"] = load_tables()
    app.router.add_get("/", open_page)
    return app


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def visit(visitor: ClientSession, address: str, clicks: int) -> None:
    async with visitor.ws_connect(address) as page:
        for number in range(clicks):
            await page.send_str(str(number))
            await page.receive_str()
            await asyncio.sleep(0.1)


async def main(app: web.Application) -> None:
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as visitor:
        beats = asyncio.create_task(heartbeat(late))
        async with asyncio.TaskGroup() as visits:
            for clicks in (4, 9, 14, 22):
                visits.create_task(visit(visitor, address, clicks))
        await asyncio.sleep(0.5)
        beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main(make_app()))
