"""A notebook's kernel answers what the user of the notebook runs and completes."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time

HOME = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = HOME.name

import pandas  # noqa: F401
from ipykernel.kernelapp import IPKernelApp
from jupyter_client import BlockingKernelClient
from tornado.ioloop import IOLoop
from traitlets.config import Config

CELL = """
import pandas as pd
sales = pd.DataFrame({f"week_{n:02d}": range(1000) for n in range(26)})
"""


def settings() -> Config:
    config = Config()
    config.IPKernelApp.no_stdout = True
    config.IPKernelApp.no_stderr = True
    config.HistoryManager.enabled = False
    config.Completer.use_jedi = True
    return config


def use_notebook(connection_file: str, loop: IOLoop, lines: list[str], late: list[float]) -> None:
    client = BlockingKernelClient(connection_file=connection_file)
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=40)
        client.execute(CELL, reply=True, timeout=40)
        client.complete("sal", reply=True, timeout=40)
        time.sleep(0.6)
        late.clear()
        for code in ("sales.", "sales.week_01.", "pd.read_csv('sales.csv').", "sales."):
            asked = time.perf_counter()
            found = client.complete(code, reply=True, timeout=40)["content"]["matches"]
            lines.append(f"{code}<tab>: {len(found)} in {time.perf_counter() - asked:.2f} s")
            time.sleep(0.4)
    finally:
        client.stop_channels()
        loop.add_callback(loop.stop)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main() -> None:
    late: list[float] = []
    lines: list[str] = []
    screen = os.fdopen(os.dup(1), "w")
    app = IPKernelApp(config=settings())
    app.initialize(["-f", os.path.join(HOME.name, "kernel.json")])
    beats = []
    loop = IOLoop.current()
    loop.add_callback(lambda: beats.append(asyncio.ensure_future(heartbeat(late))))
    user = threading.Thread(
        target=use_notebook, args=(app.abs_connection_file, loop, lines, late)
    )
    user.start()
    app.start()
    user.join()
    print("\n".join(lines), file=screen)
    print(f"worst tick {max(late) * 1000:.0f} ms", file=screen, flush=True)
    HOME.cleanup()
    os._exit(0)


if __name__ == "__main__":
    main()
