"""Plays a program as a user would: `loopcanary run`, then `loopcanary report`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from zoo.deadlocks.catalogue import BEGINS, OF_THREADS, Scenario
from zoo.deadlocks.scoring import Claim, Verdict, claims

LIMIT_S = 45
"""For how long a program is watched. The latest report comes 30 s after the wait began."""
AFTER_S = 2
"""After the first report, another one may come that is wrong."""
STARTS_S = 60
_TELLS = re.compile(r"\[loopcanary\].*\b(?:deadlock|lock not released|circular wait)\b")


class Stage:
    """Where programs play, many at once: they sleep. Few start or are read at once: that needs the CPU."""

    def __init__(
        self, *, at_once: int, starting: int, limit_s: float = LIMIT_S, by_default: bool = False
    ) -> None:
        """`by_default`: without the option `--locks`."""
        self._limit_s = limit_s
        self._by_default = by_default
        self._places, self._starting = asyncio.Semaphore(at_once), asyncio.Semaphore(starting)

    async def play(self, kind: Scenario) -> Verdict:
        """Until it is reported, or the time is up; then it is killed."""
        with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
            async with self._places:
                seconds = await self._watch(kind, folder)
            return Verdict(kind=kind, claims=await self._report(folder), seconds=seconds)

    async def _watch(self, kind: Scenario, folder: str) -> float | None:
        """After how many seconds it was reported. RuntimeError where it failed: that is not being quiet."""
        options = [] if self._by_default or kind.family in OF_THREADS else ["--locks"]
        words = ["run", *options, "--store", f"{folder}/store", "-m", kind.module, kind.name]
        async with contextlib.AsyncExitStack() as playing:
            async with self._starting:
                program = await playing.enter_async_context(_running(*words, folder=folder))
                if not await _until(program, re.compile(BEGINS), STARTS_S):
                    raise RuntimeError(f"{kind.name} did not begin")
            began = time.monotonic()
            if await _until(program, _TELLS, self._limit_s):
                seconds = time.monotonic() - began
                await asyncio.sleep(AFTER_S)
                return seconds
            if program.stderr is not None and program.stderr.at_eof() and await program.wait() != 0:
                raise RuntimeError(f"{kind.name} ended with {program.returncode}")
            return None

    async def _report(self, folder: str) -> tuple[Claim, ...]:
        words = ["report", "--store", f"{folder}/store", "--format", "json", "--limit", "0"]
        async with self._starting, _running(*words, folder=folder) as reading:
            told, errors = await reading.communicate()
        report = json.loads(told or "{}")
        if not report.get("sessions"):
            raise RuntimeError(f"nothing is known of the program: {errors.decode()}")
        return claims(report)


@contextlib.asynccontextmanager
async def _running(*words: str, folder: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command of loopcanary, killed at the end."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loopcanary", *words),
        cwd=folder,
        env=clean | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield program
    finally:
        if program.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                program.kill()
        await program.communicate()


async def _until(program: asyncio.subprocess.Process, words: re.Pattern[str], seconds: float) -> bool:
    """Whether it says so within this time."""
    assert program.stderr is not None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for line in program.stderr:
                if words.search(line.decode()):
                    return True
    return False
