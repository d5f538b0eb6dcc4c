"""A Discord bot's cog notes which games are played, and looks for the very name before it compares it with all."""

from __future__ import annotations

import asyncio
import difflib
import json
import pathlib
import random
import tempfile
import time
from types import SimpleNamespace

import discord
from discord.ext import commands

WORDS = "shadow legend racing empire star battle craft quest dungeon farm city hero galaxy zombie manager knight".split()


class Games(commands.Cog):
    """Keeps each server's list of games in a JSON file, without near duplicates."""

    def __init__(self, store: pathlib.Path) -> None:
        self.store = store

    @commands.Cog.listener()
    async def on_presence_update(self, before, after) -> None:
        if after.activity is None or after.activity == before.activity:
            return
        path = self.store / f"{after.guild.id}.json"
        games = json.loads(path.read_text())
        if self.is_new(games, after.activity.name):
            games.append(after.activity.name)
            path.write_text(json.dumps(games))

    def is_new(self, games: list[str], name: str) -> bool:
        if name in games:
            return False
        best = max(difflib.SequenceMatcher(None, game, name).ratio() for game in games)
        return best < 0.9


async def gateway(bot: commands.Bot, names: list[str]) -> None:
    """Stands for Discord: members of a server begin to play."""
    guild = SimpleNamespace(id=7)
    for name in names:
        before = SimpleNamespace(guild=guild, activity=None)
        after = SimpleNamespace(guild=guild, activity=SimpleNamespace(name=name))
        bot.dispatch("presence_update", before, after)
        await asyncio.sleep(0.2)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(store: pathlib.Path) -> None:
    rng = random.Random(5)
    known = [" ".join(rng.choices(WORDS, k=3)) + f" {number}" for number in range(12_000)]
    (store / "7.json").write_text(json.dumps(known))
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    bot = commands.Bot(command_prefix="!", intents=discord.Intents.default())
    async with bot:
        await bot.add_cog(Games(store))
        await asyncio.sleep(1)
        await gateway(bot, [known[5_000], known[11_000]])
        await asyncio.sleep(1)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(pathlib.Path(folder)))
