"""Programs under `loopcanary run`, and what the reports say of them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.who_judges import KEEPER

PROGRAMS = Path(__file__).parent / "programs"
GIVES_UP_S = 280


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Programs under `loopcanary run` with one engine, and the store they share."""

    store: Path
    engine: str

    def environment(self, **variables: str) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        keeper = {} if self.engine == "portable" else {"LOOPCANARY_KEEPER": KEEPER}
        return clean | {"LOOPCANARY_ENGINE": self.engine} | keeper | variables

    def command(self, *words: str | Path, options: tuple[str, ...] = ("--quiet",)) -> list[str]:
        run = [sys.executable, "-m", "loopcanary", "run", *options, "--store", str(self.store)]
        return run + [str(word) for word in words]

    def run(self, *words: str | Path, status: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """A program under `loopcanary run` from its start to its end."""
        done = subprocess.run(
            self.command(*words),
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=GIVES_UP_S,
            **more,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def start(
        self, *words: str | Path, variables: Mapping[str, str] = MappingProxyType({}), **more: Any
    ) -> subprocess.Popen[str]:
        environment = self.environment(**variables)
        return subprocess.Popen(
            self.command(*words), env=environment, stdout=subprocess.PIPE, text=True, **more
        )

    def tool(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Another `loopcanary` command on the store."""
        done = subprocess.run(
            [sys.executable, "-m", "loopcanary", *words, "--store", str(self.store)],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=GIVES_UP_S,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def report(self) -> dict[str, Any]:
        """What `loopcanary report --format json` says."""
        done = self.tool("report", "--format", "json")
        assert done.stderr == ""
        return json.loads(done.stdout)


@dataclass(frozen=True, slots=True)
class Marks:
    """Lines of a program that bear a comment, and the functions they are in."""

    source: str
    _functions: dict[int, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        # Outer functions come first, so that inner ones overwrite them.
        for node in ast.walk(ast.parse(self.source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), node.name))

    def find(self, word: str) -> tuple[str, int]:
        """(function, line) of `# word`; `# culprit` alone stands for "culprit of" its function."""
        found = []
        for number, line in enumerate(self.source.splitlines(), start=1):
            function = self._functions.get(number, "<module>")
            is_it = line.endswith("# culprit") and word == f"culprit of {function}"
            if is_it or line.endswith(f"# {word}"):
                found.append((function, number))
        assert len(found) == 1, f"{word}: {found}"
        return found[0]


_SEEN_AT_LEAST = 0.1
"""Of a stall's time; less, and the watchdog did not run either."""
COMPUTING = {"cpu", "native-cpu", "gil", "gc", "import", "burst"}


def admitted(stall: dict[str, Any], causes: tuple[str, ...]) -> tuple[str, ...]:
    """What the cause of a stall may be. Where the thread was ready and did not run for more than a third of
    the time, the host may be blamed for that, or, if the thread computed at all, computing for the rest; or
    our drain, if the host did not run it either while it had the GIL."""
    if 3 * (stall["ledger"]["run_queue_ms"] or 0) <= stall["duration_ms"]:
        return causes
    of_the_host = ("host", *(("gil",) if is_by_the_host(stall) else ()))
    return (*causes, *of_the_host, *(("cpu", "native-cpu") if COMPUTING & set(causes) else ()))


def is_by_the_host(stall: dict[str, Any]) -> bool:
    """By a report's stall; see `is_made_by_the_host`."""
    return is_made_by_the_host(
        stall["cause"],
        holder=(stall["holder"] or {}).get("thread"),
        heaviest=[frame["qualname"] for frame in stall["stacks"][0]["frames"]] if stall["stacks"] else [],
        waited_on=(stall["waited_on"] or {}).get("name"),
    )


def is_made_by_the_host(
    cause: str, *, holder: str | None, heaviest: list[str], waited_on: str | None
) -> bool:
    """A busy host did not run the thread; or not our drain, while that had the GIL: where it runs it gives it
    up within milliseconds. Or it ran neither a thread that was being started, nor the X server. `heaviest`:
    functions of the heaviest stack."""
    if cause == "host" or (cause == "gil" and holder == "loopcanary-drain"):
        return True
    return "Thread.start" in heaviest or "X11-unix" in (waited_on or "")


def not_by_the_host(stalls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that the program made."""
    return [stall for stall in stalls if not is_by_the_host(stall)]


def unexplained(stalls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where there should be none: those in which the host had no part worth telling, and the watchdog ran."""
    found = [stall for stall in not_by_the_host(stalls) if stall["samples"]]
    seen = [stall for stall in found if (stall["coverage"] or 0) >= _SEEN_AT_LEAST]
    return [stall for stall in seen if "host" not in admitted(stall, ())]


def wall_ns(text: str) -> int:
    """Nanoseconds of an RFC 3339 time of the report's."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(seconds + "+00:00").timestamp()) * 10**9 + int(fraction.ljust(9, "0"))
