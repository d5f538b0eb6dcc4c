"""A coding agent tells the model which parts the repository has, each time that it asks."""

from __future__ import annotations

import asyncio
import os
import pathlib
import tempfile
import time

from aiohttp import ClientSession, web

MANIFESTS = ("Cargo.toml", "package.json", "pyproject.toml", "go.mod")
SKIP = {"target", ".git", "node_modules"}


def make_repository(root: pathlib.Path) -> None:
    """A few crates, and what builds have left beside them."""
    for crate in ("core", "net", "cli"):
        (root / "crates" / crate).mkdir(parents=True)
        (root / "crates" / crate / "Cargo.toml").write_text(f'[package]\nname = "{crate}"\n')
    for place, count in (("target/debug", 2000), ("ui/node_modules", 2200), ("crates/core/target", 800)):
        folder = root / place
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"part-{number}").mkdir()


def crawl_parts(root: pathlib.Path) -> list[str]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIP]
        for name in MANIFESTS:
            if name in files:
                found.append(str(pathlib.Path(folder, name).relative_to(root)))
    return sorted(found)


def format_for_prompt(root: pathlib.Path, question: str) -> str:
    return "Parts:\n" + "\n".join(crawl_parts(root)) + "\n\n" + question


class Agent:
    def __init__(self, root: pathlib.Path, session: ClientSession, model: str) -> None:
        self.root = root
        self.session = session
        self.model = model

    async def ask(self, question: str) -> str:
        prompt = format_for_prompt(self.root, question)
        async with self.session.post(self.model, json={"prompt": prompt}) as answer:
            return (await answer.json())["text"]


async def complete(request: web.Request) -> web.Response:
    """The model."""
    prompt = (await request.json())["prompt"]
    await asyncio.sleep(0.4)
    return web.json_response({"text": f"I have read {len(prompt)} characters"})


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(root: pathlib.Path) -> None:
    app = web.Application()
    app.router.add_post("/", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as session:
        agent = Agent(root, session, address)
        beats = asyncio.create_task(heartbeat(late))
        for question in ("What is slow?", "Which crate opens sockets?", "Where are the tests?"):
            await asyncio.sleep(0.4)
            print(await asyncio.wait_for(agent.ask(question), timeout=30))
        beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as repository:
        make_repository(pathlib.Path(repository))
        asyncio.run(main(pathlib.Path(repository)))
