"""loopcanary's native engine, as docs/: `loopcanary run`, then `loopcanary report`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from zoo import loops
from zoo.observation import Frame, Report
from zoo.watchers import THRESHOLD_MS, Run

PACKAGE = "loopcanary"
LOOPS = tuple(loops.ALL)
ENGINE = "native"


def command(run: Run) -> list[str]:
    """`loopcanary run`."""
    return run_by(run, ENGINE)


def run_by(run: Run, engine: str) -> list[str]:
    """The command with one engine."""
    words = ["--quiet", "--engine", engine, "--threshold", f"{THRESHOLD_MS}ms", "--store", str(_store(run))]
    return [run.python, "-m", "loopcanary", "run", *words, str(run.program)]


def reports(run: Run) -> Sequence[Report]:
    """What `loopcanary report` says, also of a killed program."""
    return reports_by(run, ENGINE)


def reports_by(run: Run, engine: str) -> Sequence[Report]:
    """The reports of one engine. RuntimeError where another engine took its place."""
    words = ["report", "--store", str(_store(run)), "--format", "json", "--limit", "0"]
    done = subprocess.run(
        [run.python, "-m", "loopcanary", *words],
        env=run.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    if done.returncode == 1 and "Traceback" not in done.stderr:  # an empty store: a killed one left nothing
        return []
    done.check_returncode()
    (run.folder / "report.json").write_text(done.stdout)
    report = json.loads(done.stdout)
    engines = {session["engine"] for session in report["sessions"]}
    if engines - {engine}:
        raise RuntimeError(f"the {engine} engine did not run, but {', '.join(engines)}")
    return [parse(stall) for stall in report["stalls"]]


def parse(stall: dict[str, Any]) -> Report:
    """One stall of the report."""
    guilty = stall["holder"] or {}
    holder = guilty.get("culprit")
    culprit = stall["culprit"]
    return Report(
        frames=(_frame(culprit),) if culprit else (),
        causes=(stall["cause"],),
        holder=_frame(holder) if holder else None,
        thread=guilty.get("thread"),
        duration_ms=stall["duration_ms"],
        began_ns=_wall_ns(stall["began_at"]),
        excused=stall["cause"] == "host",
        queued=_queued(stall),
        bug=stall["fingerprint"],
        advice=stall["advice"],
    )


def _frame(culprit: dict[str, Any]) -> Frame:
    return Frame(culprit["file"], culprit["function"], culprit["line"])


def _queued(stall: dict[str, Any]) -> float | None:
    queued_ms, duration_ms = stall["ledger"]["run_queue_ms"], stall["duration_ms"]
    if queued_ms is None or not duration_ms:
        return None
    # A hypervisor may have given the core to other machines.
    stolen: float = (stall["surroundings"] or {}).get("stolen_cpu") or 0.0
    return max(queued_ms / duration_ms, stolen)


def _wall_ns(text: str) -> int:
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(seconds + "+00:00").timestamp()) * 10**9 + int(fraction.ljust(9, "0"))


def _store(run: Run) -> str:
    return str(run.folder / "store")
