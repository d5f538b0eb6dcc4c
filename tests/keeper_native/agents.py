"""A process with the native engine alone, that does what a test tells it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopcanary.flight import FlightFile
from loopcanary.model import StallEvidence

PRELUDE = """
import json, os, signal, sys, threading, time
import loopcanary._native as native

def start(path, **more):
    usual = dict(threshold_ns=20_000_000, sample_delay_ns=5_000_000, sample_interval_ns=5_000_000,
        hang_ns=60_000_000, anr_ns=10**18)
    native.start(path=path, facts=b"{}", takes_keeper=True, **(usual | more))

def spin(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass

def stall(seconds=0.03):
    # Of a length that is one by definition; comes back when the watchdog has completed it.
    seen = native.wait_for_news(2**32 - 1, 0)
    token = native.work_begin("work")
    spin(seconds)
    native.work_end(token)
    return native.wait_for_news(seen, -1)

names = dict(globals())
for line in sys.stdin:
    words = json.loads(line)
    try:
        answer = eval(words, names) if words[:1] != "!" else exec(words[1:], names)
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    print(json.dumps(answer, default=str), flush=True)
"""


@dataclass
class Agent:
    """One such process; its flight file is at `path`."""

    path: Path
    process: subprocess.Popen[str]

    @classmethod
    def begin(cls, folder: Path, stderr: Any = None, **settings: int) -> Agent:
        """Starts the process and its engine, in the way of a keeper; `settings`: of the engine."""
        path = folder / "agent.flight"
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={"LOOPCANARY": "0"},
        )
        agent = cls(path, process)
        assert agent.do(f"start({str(path)!r}, **{settings!r})") is None
        return agent

    def do(self, words: str) -> Any:
        """What the expression gives in the process; statements begin with `!`."""
        self.tell(words)
        return self.answer()

    def tell(self, words: str) -> None:
        """Does not wait for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Of the last `tell`."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def stalls(self) -> list[tuple[int, StallEvidence]]:
        """What its slots hold, with the slots' numbers."""
        with FlightFile.open(self.path) as file:
            return file.stalls()

    def end(self) -> int:
        """Ends the process by the end of its input; its status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()
