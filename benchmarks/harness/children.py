"""Child processes of the same program, watched and not, that are asked in turns.

Two figures that were taken minutes apart, or in processes that lie differently in memory, do not make a
ratio. So both children live at the same time, pinned to the same core, with the same hash seed and the same
settings of malloc, and do a short piece of work alternately. Neighbours on the machine then disturb both.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CPUS = sorted(os.sched_getaffinity(0))
PROGRAM_CPU = CPUS[-1]
"""Where the measured programs run; what drives them runs on another core where there is one."""
DRIVER_CPU = CPUS[0]

_PINNED = {
    "PYTHONHASHSEED": "0",
    # Otherwise malloc gives memory back to the kernel and takes it again, or does not, by chance.
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
_WATCHED = "BENCHMARK_WATCHED"
_SAME_MODULES = "BENCHMARK_SAME_MODULES"
_IMPORTED_BY_WATCHING = """
import asyncio, os, runpy, sys
sys.path[0] = os.path.dirname(sys.argv[1])
runpy.run_path(sys.argv[1], run_name="benchmark")
import loopcanary
before = set(sys.modules)
loopcanary.install()
asyncio.run(asyncio.sleep(0))
print(*(name for name in sys.modules if name not in before))
"""


@functools.cache
def _same_modules() -> str:
    """What watching imports on top of the benchmark's own imports. The program that is not watched gets the
    same on its heap: how objects lie there makes a loop faster or slower by a hundredth, by chance."""
    with tempfile.TemporaryDirectory(prefix="loopcanary-benchmark-", ignore_cleanup_errors=True) as folder:
        return subprocess.run(
            [sys.executable, "-c", _IMPORTED_BY_WATCHING, str(Path(sys.argv[0]).absolute())],
            env={**_without_settings(), "LOOPCANARY_STORE": folder, "LOOPCANARY_CONSOLE": "off"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=folder,
        ).stdout


def _without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}


def environment(*, watched: bool, store: Path, **settings: str) -> dict[str, str]:
    """The child's environment; `settings` are loopcanary's, such as threshold="20ms"."""
    own = {f"LOOPCANARY_{name.upper()}": value for name, value in settings.items()}
    return {
        **_without_settings(),
        **_PINNED,
        **own,
        "LOOPCANARY_STORE": str(store),
        "LOOPCANARY_CONSOLE": "off",
        _WATCHED: str(int(watched)),
        _SAME_MODULES: _same_modules(),
    }


class Child:
    """This benchmark's own file as a child process, which answers one line of JSON for each line sent."""

    def __init__(self, role: str, *, watched: bool, store: Path, **settings: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(sys.argv[0]).absolute()), "--child", role],
            env=environment(watched=watched, store=store, **settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=store,
        )
        self.pid = self._process.pid
        self.greeting = self.receive()

    def ask(self, question: object = None) -> Any:
        """Sends the question and waits for the answer."""
        self.send(question)
        return self.receive()

    def send(self, question: object = None) -> None:
        """Sends the question."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """Waits for an answer. RuntimeError where the child ended instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the child ended with status {self._process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        """Closes the child's input, which ends it."""
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            self._process.communicate(timeout=10)
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def child(role: str, *, watched: bool, **settings: str) -> Iterator[Child]:
    """A child in a folder of its own, which is also its store."""
    with tempfile.TemporaryDirectory(prefix="loopcanary-benchmark-", ignore_cleanup_errors=True) as folder:
        made = Child(role, watched=watched, store=Path(folder), **settings)
        try:
            yield made
        finally:
            made.end()


@contextlib.contextmanager
def pair(role: str, **settings: str) -> Iterator[tuple[Child, Child]]:
    """Two children, watched and not."""
    with child(role, watched=True, **settings) as watched, child(role, watched=False, **settings) as plain:
        yield watched, plain


def alternate(
    first: Callable[[], float], second: Callable[[], float], times: int
) -> list[tuple[float, float]]:
    """Calls both `times` times, each as often before the other as after it."""
    figures = []
    for index in range(times):
        if index % 2:
            late = second()
            figures.append((first(), late))
        else:
            early = first()
            figures.append((early, second()))
    return figures


# ---- in the child ----------------------------------------------------------------------------


def start_watching(**settings: Any) -> Any:
    """In the child: pins it, and installs loopcanary with these settings, where it was asked for. The canary,
    if any."""
    os.sched_setaffinity(0, {PROGRAM_CPU})
    for name in os.environ[_SAME_MODULES].split():
        importlib.import_module(name)
    import loopcanary

    canary = loopcanary.install(**settings) if os.environ[_WATCHED] == "1" else None
    gc.collect()
    gc.freeze()  # full collections then cost the same, however much was there before the work
    return canary


def tell(answer: object) -> None:
    """In the child: one answer, or the greeting that it is ready."""
    print(json.dumps(answer), flush=True)


def answer_all(answer: Callable[[Any], object]) -> None:
    """In the child: greets, then answers until the input ends."""
    tell("ready")
    for line in sys.stdin:
        tell(answer(json.loads(line)))
