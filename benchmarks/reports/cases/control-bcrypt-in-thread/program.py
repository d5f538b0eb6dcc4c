"""A login service: it checks passwords with bcrypt at a high cost, several at a time."""

from __future__ import annotations

import asyncio
import time

import bcrypt
from aiohttp import ClientSession, web

USERS = {
    "ada": bcrypt.hashpw(b"engine", bcrypt.gensalt(13)),
    "grace": bcrypt.hashpw(b"moth", bcrypt.gensalt(13)),
}


def verify_password(name: str, password: str) -> bool:
    return bcrypt.checkpw(password.encode(), USERS[name])


async def log_in(request: web.Request) -> web.Response:
    form = await request.post()
    if await asyncio.to_thread(verify_password, form["name"], form["password"]):
        return web.Response(text=f"welcome, {form['name']}")
    return web.Response(status=403, text="no")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    app = web.Application()
    app.router.add_post("/login", log_in)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/login"
    late: list[float] = []
    async with ClientSession() as visitor:

        async def try_password(name: str, password: str) -> None:
            async with visitor.post(address, data={"name": name, "password": password}) as answer:
                print(answer.status, await answer.text())

        beats = asyncio.create_task(heartbeat(late))
        for _ in range(3):
            await asyncio.gather(try_password("ada", "engine"), try_password("grace", "bug"))
            await asyncio.sleep(0.2)
        beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
