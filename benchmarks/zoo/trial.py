"""One run of one kind under one watcher, from an empty folder to its score."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from zoo import here, truth, watchers
from zoo.catalogue import Kind
from zoo.observation import Report
from zoo.scoring import Score, score
from zoo.stage import SKIPPED, TRUTH
from zoo.truth import Truth
from zoo.waits import Waits
from zoo.watchers import Run

TOO_LONG_S = 120
KILLED_AFTER_S = 2.0
"""From the begin of a stall that never ends until its program is killed."""
BENCHMARKS = Path(__file__).parent.parent
DISTURBED = 0.25
"""A run is disturbed if the thread was ready and not run for more than this part of its stall, or where
another thread is guilty, any thread; where nothing is to stall, any thread for this part of the threshold
within as long as the threshold is: many short waits, one at each wake-up, are no stall.
What caused a stall is then another matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one run."""

    kind: str
    watcher: str
    loop: str
    outcome: str
    """`played`, `skipped` (not possible here), or `failed`."""
    disturbed: bool = False
    """Other work on the machine kept its threads from running."""
    note: str = ""
    truth_ms: float | None = None
    reports: list[Report] = field(default_factory=list)
    score: Score = field(default_factory=Score)


def play(kind: Kind, watcher_name: str, loop: str, keep: Path | None = None) -> Trial:
    """Runs it. With `keep`, its folder stays there."""
    watcher = watchers.find(watcher_name)
    if lacking := here.lacking(kind.needs):
        return Trial(kind=kind.name, watcher=watcher_name, loop=loop, outcome="skipped", note=lacking)
    with _folder(keep) as folder:
        truth.create(folder / "truth")
        run = Run(
            program=kind.path, folder=folder, python=sys.executable, environment=_environment(folder, loop)
        )
        status, waits = _run_to_end(watcher.command(run), run, killed=kind.killed)
        what = {"kind": kind.name, "watcher": watcher_name, "loop": loop}
        known = truth.read(folder / "truth")
        if status == SKIPPED:
            return Trial(**what, outcome="skipped", note=run.stderr_text.strip().rpartition("\n")[2])
        if status != (-9 if kind.killed else 0) or not (known.began_ns or kind.control):
            return Trial(**what, outcome="failed", note=f"status {status}: {run.stderr_text[-400:]}")
        reports = list(watcher.reports(run))
        # Who has no core between the two clocks reads too little: the most of some readings.
        wall_ns = max(time.time_ns() - time.monotonic_ns() for _ in range(5))
        began_wall_ns = wall_ns + known.began_ns
        return Trial(
            **what,
            outcome="played",
            disturbed=(disturbed := _is_disturbed(kind, known, waits)),
            truth_ms=known.duration_ms,
            reports=reports,
            score=score(kind, known, began_wall_ns, reports, disturbed=disturbed),
        )


def _is_disturbed(kind: Kind, known: Truth, waits: Waits) -> bool:
    if kind.causes == ("host",):
        return False
    if kind.control:
        longest_ms = waits.longest_within_ms(watchers.THRESHOLD_MS, known.plays_ns, known.played_ns)
        return longest_ms > watchers.THRESHOLD_MS * DISTURBED
    length_ms = known.duration_ms or KILLED_AFTER_S * 1e3
    waited_ms = waits.between_ms(known.thread, known.began_ns, known.ended_ns)
    if kind.holders:
        waited_ms = max(waited_ms, waits.longest_ms(known.began_ns, known.ended_ns))
    return waited_ms > length_ms * DISTURBED


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="zoo-", dir=keep))
    try:
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _environment(folder: Path, loop: str) -> dict[str, str]:
    unset = ("LOOPCANARY", "PYTHON", "ZOO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    needed = here.environment(loop, folder)
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), needed.get("PYTHONPATH")]))
    return kept | needed | {"PYTHONPATH": path, TRUTH: str(folder / "truth")}


def _run_to_end(words: list[str], run: Run, *, killed: bool) -> tuple[int, Waits]:
    """The program's exit status, and its waits for a CPU. Killed where it shall be, or takes too long."""
    process = subprocess.Popen(
        words,
        env=run.environment,
        cwd=run.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    )
    assert process.stderr is not None
    reader = threading.Thread(target=_read_lines, args=[process.stderr, run.stderr])
    reader.start()
    deadline = time.monotonic() + TOO_LONG_S
    waits = Waits(process.pid)
    while process.poll() is None:
        waits.look()
        known = truth.read(run.folder / "truth")
        if killed and known.began_ns and time.monotonic_ns() - known.began_ns > KILLED_AFTER_S * 1e9:
            process.kill()
        if time.monotonic() > deadline:
            process.kill()
            run.stderr.append((time.monotonic_ns(), "took too long"))
            break
        time.sleep(0.02)
    status = process.wait()
    _end_children(process.pid)
    reader.join(5)
    process.stderr.close()
    return status, waits


def _end_children(group: int) -> None:
    """What the program left behind, such as children of one that was killed: its own process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, 9)


def _read_lines(stream: IO[str], lines: list[tuple[int, str]]) -> None:
    lines.extend((time.monotonic_ns(), line) for line in stream)


def machine() -> dict[str, Any]:
    """Where this was measured."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
