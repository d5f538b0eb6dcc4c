"""A service checks passwords with bcrypt in one thread: logins queue for seconds, and its loop is free."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time

import aiohttp
import bcrypt
from aiohttp import web

PASSWORD = b"correct horse battery staple"
STORED = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(rounds=12))
HASHING = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="hashing")


async def verify_password(password: bytes) -> bool:
    return await asyncio.get_running_loop().run_in_executor(HASHING, bcrypt.checkpw, password, STORED)


async def login(request: web.Request) -> web.Response:
    known = await verify_password(await request.read())
    return web.Response(text="welcome" if known else "no", status=200 if known else 401)


async def livez(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def log_in(session: aiohttp.ClientSession, url: str) -> float:
    began = time.perf_counter()
    async with session.post(f"{url}/login", data=PASSWORD) as answer:
        await answer.text()
    return time.perf_counter() - began


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    app = web.Application()
    app.add_routes([web.post("/login", login), web.get("/livez", livez)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    url = f"http://{host}:{port}"
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    async with aiohttp.ClientSession() as session:
        await asyncio.sleep(1)
        logins = asyncio.gather(*(log_in(session, url) for _ in range(6)))
        await asyncio.sleep(0.2)
        began = time.perf_counter()
        async with session.get(f"{url}/livez") as answer:
            await answer.text()
        alive = time.perf_counter() - began
        slowest = max(await logins)
        await asyncio.sleep(0.5)
    beats.cancel()
    await runner.cleanup()
    print(f"slowest login {slowest:.1f} s, livez {alive * 1000:.0f} ms, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
