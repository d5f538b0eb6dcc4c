"""Asks the consoles of eight routers at the same time, each with its own pexpect child."""

from __future__ import annotations

import asyncio
import time

import pexpect

CONSOLES = 8
PROMPT = "router> "

# Stands in for the console of a router: a prompt, a command, an answer.
ROUTER = """
stty -echo
while printf 'router> '; read command; do
    sleep 0.1
    echo "$command: 3 interfaces are up"
done
"""


def open_console() -> pexpect.spawn:
    return pexpect.spawn("/bin/sh", ["-c", ROUTER], encoding="utf-8", timeout=10)


async def ask_console(child: pexpect.spawn) -> int:
    answers = 0
    for number in range(6):
        await child.expect_exact(PROMPT, async_=True)
        answers += child.before.count("up")
        child.sendline(f"show interfaces {number}")
    await child.expect_exact(PROMPT, async_=True)
    return answers + child.before.count("up")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(children: list[pexpect.spawn]) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    began = time.perf_counter()
    answers = await asyncio.gather(*(ask_console(child) for child in children))
    print(f"{sum(answers)} answers in {time.perf_counter() - began:.1f} s")
    beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main([open_console() for _ in range(CONSOLES)]))
