"""A trio indexer lists a tree of documents; it awaits the listing, and yet nothing else runs."""

from __future__ import annotations

import pathlib
import tempfile
import time
from collections.abc import Iterable

import trio


def make_tree(root: pathlib.Path) -> None:
    for section in range(800):
        folder = root / f"section-{section:03}"
        folder.mkdir()
        for number in range(100):
            open(f"{folder}/note-{number:03}.md", "x").close()


def names_of(notes: Iterable[trio.Path]) -> list[str]:
    return [note.name for note in notes]


async def index(root: trio.Path) -> list[str]:
    found = await root.glob("*/*.md")
    return names_of(found)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await trio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(root: str) -> None:
    late: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(heartbeat, late)
        await trio.sleep(1)
        names = await index(trio.Path(root))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    print(f"{len(names)} notes, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        make_tree(pathlib.Path(folder))
        trio.run(main, folder)
