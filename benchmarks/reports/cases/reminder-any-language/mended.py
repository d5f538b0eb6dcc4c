"""A chat bot that reminds people: finds out when from what they write."""

from __future__ import annotations

import asyncio
import time

import dateparser

CHAT = (
    ("ann", "!remind in 20 minutes"),
    ("bob", "!remind tomorrow at 9"),
    ("cy", "!remind when the cake is ready"),
    ("ann", "!remind Friday 18:30"),
    ("bob", "!remind me, will you?"),
)


class Bot:
    def __init__(self) -> None:
        self.started = dateparser.parse("now", languages=["en"])
        self.messages: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def run(self) -> None:
        while True:
            author, text = await self.messages.get()
            command, _, when = text.partition(" ")
            if command == "!remind":
                await self.remind(author, when)
            self.messages.task_done()

    async def remind(self, author: str, when: str) -> None:
        moment = dateparser.parse(when, languages=["en"], settings={"PREFER_DATES_FROM": "future"})
        if moment is None:
            print(f"{author}: sorry, when?")
        else:
            print(f"{author}: I will remind you at {moment:%H:%M} on {moment:%A}")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(bot: Bot) -> None:
    late: list[float] = []
    background = [asyncio.create_task(heartbeat(late)), asyncio.create_task(bot.run())]
    for message in CHAT:
        await asyncio.sleep(0.3)
        await bot.messages.put(message)
    await bot.messages.join()
    for task in background:
        task.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main(Bot()))
