"""Programs of a test's own, watched, and what the store says of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.who_judges import KEEPER

from loopcanary.assembly.store import open_store, recover
from loopcanary.model import Session, Stall
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.store import Store
from loopcanary.store.recovery import flight_files

GIVES_UP_S = 280
COUNTS_THREADS_LATE = (3, 13) <= sys.version_info < (3, 13, 10) or (3, 14) <= sys.version_info < (3, 14, 1)
"""This CPython warns of forks beside threads when the fork hooks have run and ours are back (gh-137109)."""
PRELUDE = """\
import asyncio, os, sys, threading, time

def samples():
    # How many were taken in this process; None where nothing is watched.
    counts = getattr(sys.modules.get("loopcanary"), "statistics", dict)()
    return counts.get("samples_taken", counts.get("samples"))

def name_of(stall):
    # A busy machine has stalls that no line has caused.
    return stall.culprit and stall.culprit.function

def block(name, seconds=0.15):
    # Blocks in a function of this name; on a crowded machine until the watchdog got to run and took samples.
    names = {"time": time, "samples": samples}
    exec(compile(BLOCK.format(name=name), f"stalls/{name}.py", "exec"), names)
    names[name](seconds)

BLOCK = '''
def {name}(seconds):
    before, began, slept = samples(), time.monotonic(), 0.0
    while True:
        time.sleep(seconds)
        slept += seconds
        now = samples()  # 0 where the watchdog has rested all the time, for a fork
        lasted = time.monotonic() - began
        # Asking takes long on a crowded machine, too: the sleep has most of the time.
        if None in (before, now) or lasted > 60 or (now >= before + 3 and slept > 0.8 * lasted):
            break
        seconds = 0.05 if slept > 0.8 * lasted else lasted
'''

def stall(name, seconds=0.15):
    # One callback of a loop of its own that takes too long.
    async def main():
        samples()  # loads what it needs, which is no part of the block
        await asyncio.sleep(0)
        block(name, seconds)
    asyncio.run(main())
"""
PATIENT_FORKS = """\
from loopcanary.engine import canary as _canary, fork_pause as _pause
# On a busy host our drain may have no core for as long as a fork is held up for it.
_canary.FORK_PATIENCE_S = _pause.FORK_PATIENCE_S = _pause._GONE_S = 60
"""
PATIENT_SIGNALS = """\
from loopcanary.engine import recorder as _recorder
# Before the engine starts. On a busy host our watchdog may have no core for as long as a signal is held back.
_recorder.SIGNAL_PATIENCE_NS = _recorder.FAULT_PATIENCE_NS = 60_000_000_000
"""
PATIENT_PLUGINS = """\
from loopcanary.engine import apart as _apart
_apart.PATIENCE_S = 60  # on a busy host a plugin's thread may have no core for as long as it is waited for
"""
PATIENT_END = """\
from loopcanary.assembly import kept as _kept
_kept.END_PATIENCE_S = 60  # on a busy host a keeper may need longer to say what there was
"""


def is_block(stall: Stall) -> bool:
    return stall.culprit is not None and stall.culprit.file.startswith("stalls/")


def refusing(call: int, count: int = 1) -> str:
    """The beginning of a program in which the kernel refuses these system calls, by number. It prints
    `no seccomp` and ends where there is no such filter."""
    return f"""
    import ctypes, struct, platform

    def refuse(call, count):
        # BPF: load the architecture, compare; load the number, compare; EPERM or allow (seccomp(2)).
        architecture = {{"x86_64": 0xC000003E, "aarch64": 0xC00000B7}}[platform.machine()]
        program = [
            (0x20, 0, 0, 4), (0x15, 0, 4, architecture), (0x20, 0, 0, 0), (0x35, 2, 0, call + count),
            (0x35, 0, 1, call), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000),
        ]
        text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
        filter_ = ctypes.create_string_buffer(struct.pack("HL", len(program), ctypes.addressof(text)))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        return libc.prctl(22, 2, filter_, 0, 0) == 0

    if not refuse({call}, {count}):
        print("no seccomp")
        sys.exit()
"""


@dataclass
class Place:
    folder: Path
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def program(self, text: str, name: str = "program.py", prelude: str = PRELUDE) -> Path:
        path = self.folder / name
        path.write_text(prelude + textwrap.dedent(text), encoding="utf-8")
        return path

    def environment(self, **variables: str) -> dict[str, str]:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTHON"))
        }
        watched = {
            "LOOPCANARY": "1",
            "LOOPCANARY_DEBUG": "1",
            "LOOPCANARY_STORE": str(self.store),
            "LOOPCANARY_THRESHOLD": "100ms",
            "LOOPCANARY_KEEPER": KEEPER,
        }
        return clean | watched | variables

    def plain(self, **variables: str) -> dict[str, str]:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTHON"))
        }
        return clean | variables

    def run(
        self, *words: str | Path, status: int | None = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Python with LOOPCANARY=1 on these words, from its start to its end."""
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env=self.environment(**variables),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=GIVES_UP_S,
        )
        if status is not None:
            assert done.returncode == status, done.stdout + done.stderr
        return done

    def start(self, *words: str | Path, **more: object) -> subprocess.Popen[bytes]:
        """The same, and leaves it running; it is ended with the test."""
        environment = more.pop("env", None) or self.environment()
        process = subprocess.Popen(
            [sys.executable, *map(str, words)], env=environment, cwd=self.folder, **more
        )
        self._started.append(process)
        return process

    def end_all(self) -> None:
        for status in self.store.glob("keeper/*.json"):
            with suppress(OSError, ValueError, KeyError):
                os.kill(json.loads(status.read_text(encoding="utf-8"))["pid"], signal.SIGTERM)
        for process in self._started:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def stalls(self, store: Path | None = None) -> list[Stall]:
        """All that is in the store, with what dead processes left; oldest first."""
        opened = open_store(store or self.store)
        try:
            self._take_in(opened)
            return opened.reader.issues(STALLS)[::-1]
        finally:
            opened.close()

    def _take_in(self, opened: Store) -> None:
        recover(opened)
        while any(name.endswith(".claimed") for name in self.left_behind(opened.folder)):
            time.sleep(0.02)  # a keeper has it in hand, or had it when it was killed
            recover(opened)

    def sessions(self, store: Path | None = None) -> dict[int, Session]:
        """By process id."""
        opened = open_store(store or self.store)
        try:
            self._take_in(opened)
            return {session.pid: session for session in opened.reader.sessions(IssueQuery())}
        finally:
            opened.close()

    def culprits(self, store: Path | None = None) -> list[str]:
        """Names of the blocks (see PRELUDE) that stalled a loop, sorted. A loaded machine may add others."""
        return sorted(stall.culprit.function for stall in self.stalls(store) if is_block(stall))

    def take_in_all(self) -> None:
        """Takes in what dead processes left, also where another recovery may still be at work."""
        with mock.patch.object(flight_files, "_FRESH_S", 0):
            self.stalls()

    def left_behind(self, store: Path | None = None) -> list[str]:
        """Flight files of the store that nobody took in."""
        flight = (store or self.store) / "flight"
        return sorted(path.name for path in flight.iterdir()) if flight.is_dir() else []
