"""A Discord bot polls a SQLite database in a thread, while another writer keeps the database locked."""

from __future__ import annotations

import asyncio
import pathlib
import sqlite3
import tempfile
import threading
import time

import discord
from discord.ext import tasks


class Sessions:
    def __init__(self, path: pathlib.Path) -> None:
        self.connection = sqlite3.connect(path, timeout=10, check_same_thread=False)
        self.connection.execute("create table handoffs (id integer, state text)")
        self.connection.execute("insert into handoffs values (1, 'pending')")
        self.connection.commit()

    def pending(self) -> list[tuple[int]]:
        return self.connection.execute("select id from handoffs where state = 'pending'").fetchall()


class Bot(discord.Client):
    def __init__(self, sessions: Sessions) -> None:
        super().__init__(intents=discord.Intents.none())
        self.sessions = sessions
        self.polls = 0

    async def on_ready(self) -> None:
        self.watch.start()

    @tasks.loop(seconds=0.4)
    async def watch(self) -> None:
        handoffs = await asyncio.to_thread(self.sessions.pending)
        self.polls += len(handoffs)


def import_history(path: pathlib.Path) -> None:
    """In place of another process, which writes for three seconds in one transaction."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin exclusive")
    time.sleep(3)
    other.execute("commit")
    other.close()


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(path: pathlib.Path) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    async with Bot(Sessions(path)) as bot:
        bot.dispatch("ready")
        await asyncio.sleep(1)
        writer = threading.Thread(target=import_history, args=(path,))
        writer.start()
        await asyncio.sleep(4.5)
        bot.watch.cancel()
        print(f"{bot.polls} polls")
    beats.cancel()
    writer.join()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(pathlib.Path(folder) / "state.db"))
