"""A hub enrols devices: each one gets an RSA key, which a child process generates."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

from aiohttp import ClientSession, web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

DEVICES = ["porch", "cellar", "garage", "attic", "gate"]


def make_key() -> tuple[bytes, bytes]:
    """A new key: the private and the public half, as text."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=4096)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


async def enrol(request: web.Request) -> web.Response:
    keys = request.app["keys"]
    name = request.match_info["name"]
    if name not in keys:
        keys[name] = await asyncio.get_running_loop().run_in_executor(request.app["maker"], make_key)
    return web.Response(body=keys[name][1], content_type="application/x-pem-file")


async def show_state(request: web.Request) -> web.Response:
    return web.json_response(sorted(request.app["keys"]))


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def poll_state(visitor: ClientSession, address: str) -> None:
    """A dashboard that looks every now and then."""
    while True:
        async with visitor.get(address + "state") as answer:
            print("enrolled:", await answer.json())
        await asyncio.sleep(0.5)


async def main(maker: ProcessPoolExecutor) -> None:
    app = web.Application()
    app["maker"] = maker
    app["keys"] = {}
    app.router.add_post("/enrol/{name}", enrol)
    app.router.add_get("/state", show_state)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as visitor:
        async with visitor.get(address + "state") as answer:
            print("enrolled:", await answer.json())
        beats = asyncio.create_task(heartbeat(late))
        dashboard = asyncio.create_task(poll_state(visitor, address))
        await asyncio.sleep(1)
        for name in DEVICES:
            async with visitor.post(f"{address}enrol/{name}") as answer:
                print(name, len(await answer.text()))
            await asyncio.sleep(0.3)
        beats.cancel()
        dashboard.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        executor.submit(len, "").result()
        asyncio.run(main(executor))
