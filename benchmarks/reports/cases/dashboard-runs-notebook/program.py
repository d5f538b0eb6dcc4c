"""A dashboard server: each visit runs a notebook in a warm kernel and sends the page, piece by piece."""

from __future__ import annotations

import asyncio
import time

import nbformat
import tornado.web
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tornado.httpclient import AsyncHTTPClient

NOTEBOOK = new_notebook(
    cells=[
        new_markdown_cell("# Sales"),
        new_code_cell("import time\ntime.sleep(0.5)  # fetch the figures\nfigures = [3, 5, 8]"),
        new_code_cell("time.sleep(0.5)  # sum them up\nprint('sum', sum(figures))"),
    ],
    metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
)


class Dashboard(tornado.web.RequestHandler):
    async def get(self) -> None:
        self.write("<div class=spinner>Running the notebook ...</div>")
        await self.flush()
        notebook = nbformat.from_dict(NOTEBOOK)
        client = NotebookClient(notebook, km=self.settings["kernel"], timeout=30)
        client.execute()
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                self.write(f"<pre>{output['text']}</pre>")


class Style(tornado.web.RequestHandler):
    """What the page needs before it can be shown at all."""

    def get(self) -> None:
        self.write(".spinner {animation: turn 1s infinite}")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    kernel = AsyncKernelManager()
    await kernel.start_kernel()
    app = tornado.web.Application([(r"/", Dashboard), (r"/style.css", Style)], kernel=kernel)
    server = app.listen(0, address="127.0.0.1")
    port = next(iter(server._sockets.values())).getsockname()[1]
    visitor = AsyncHTTPClient()
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(2)
    began = time.perf_counter()
    page = asyncio.ensure_future(visitor.fetch(f"http://127.0.0.1:{port}/", request_timeout=30))
    await asyncio.sleep(0.1)
    await visitor.fetch(f"http://127.0.0.1:{port}/style.css", request_timeout=30)
    print(f"the style sheet came after {time.perf_counter() - began:.2f} s")
    print((await page).body.decode())
    await asyncio.sleep(0.3)
    beats.cancel()
    server.stop()
    await kernel.shutdown_kernel(now=True)
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
