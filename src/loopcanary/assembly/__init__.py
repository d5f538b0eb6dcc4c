"""Wires the parts together; the only place that knows them all.

    watching    the engine of this process, armed
    running     the engine of this process, from its first loop on
    reading     stores, and what dead and running processes left beside them
    explaining  what reports ask the diagnosis
    checkup     what works here, for `loopcanary doctor`
    dumping     another process, read from outside
    surveying   all watched processes, from their flight files
    following   stores, for whoever is to be notified
    attaching   another process, watched from now on; `attached` is what runs in it

The functions here load what they need when they are called: a process that only might run a loop shall
not pay for the diagnosis.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from loopcanary.assembly.surveying import Survey
    from loopcanary.diagnosis.sources import SourceText
    from loopcanary.engine.canary import Canary
    from loopcanary.model import Config, LagIssue, LaneTotals, LoopHealth, Stall
    from loopcanary.model.outside import Attached, Detached, ProcessSight, Unseen
    from loopcanary.store import Recovery, Store


def make_canary(config: Config) -> Canary:
    """A canary for this process, neither armed nor started."""
    from loopcanary.assembly import watching

    return watching.make_canary(config)


def stderr_for_children() -> dict[str, str]:
    """The variables by which the children of a program know whether they share its stderr, which is ours."""
    from loopcanary.reporters.whose_stderr import STDERR, own_stderr

    return {STDERR: own_stderr()}


def open_store(folder: Path, config: Config | None = None) -> Store:
    """The store in a folder; nothing is opened before it is needed."""
    from loopcanary.assembly import reading

    return reading.open_store(folder, config)


def recover(into: Store) -> Recovery:
    """Takes in what dead processes left in the store's folder, and looks at what running ones do now."""
    from loopcanary.assembly import reading

    return reading.recover(into)


def why_grouped(stall: Stall) -> tuple[str, ...]:
    """What the stall's fingerprint was made of, each part as `name=value`; empty where that is not known."""
    from loopcanary.assembly import explaining

    return explaining.why_grouped(stall)


def why_issues_grouped(issue: LagIssue, stalls: Sequence[Stall]) -> tuple[str, ...]:
    """What the fingerprint of an issue that is no stall was made of, each part as `name=value`; empty where
    that is not known. `stalls`: those in it."""
    from loopcanary.assembly import explaining

    return explaining.why_issues_grouped(issue, stalls)


def delays(loops: Sequence[LoopHealth]) -> Callable[[Sequence[int]], int | None]:
    """A function from stalls of these loops to the p99 delay that they would have had together without those;
    it gives None where their histograms are not known."""
    from loopcanary.assembly import explaining

    return explaining.delays(loops)


def source_reader() -> Callable[[str], SourceText | None]:
    """A function from a file's name to its source as it is now; None where there is none."""
    from loopcanary.diagnosis.sources import FileSources

    return FileSources().read


def doctor_facts() -> list[tuple[str, str, str]]:
    """(name, `ok` | `off` | `problem`, detail) of everything that may or may not work here."""
    from loopcanary.assembly import checkup

    return checkup.doctor_facts()


def self_test() -> tuple[str, str, str]:
    """A child program stalls for 300 ms; whether that was seen, with the right line."""
    from loopcanary.assembly import checkup

    return checkup.self_test()


def look_at(pid: int) -> ProcessSight | Unseen:
    """Another process as it is now, without stopping it; or why it cannot be seen. Linux."""
    from loopcanary.assembly import dumping

    return dumping.look_at(pid)


def survey(stores: Sequence[Path]) -> Survey:
    """A reader of all watched processes of the user; `stores`: folders that may have flight files, too."""
    from loopcanary.assembly import surveying
    from loopcanary.store import FLIGHT_FOLDER

    return surveying.Survey([folder / FLIGHT_FOLDER for folder in stores])


def health_of(totals: LaneTotals, now_ns: int) -> LoopHealth:
    """Figures of a lane at a monotonic time."""
    from loopcanary.assembly import surveying

    return surveying.health_of(totals, now_ns)


def attach(pid: int, settings: dict[str, Any], timeout_s: float) -> Attached | Unseen:
    """Has another process watched from now on; or why it cannot be. Each step may take `timeout_s`."""
    from loopcanary.assembly import attaching

    return attaching.attach(pid, settings, timeout_s)


def detach(pid: int, timeout_s: float) -> Detached | Unseen:
    """Ends the watching of another process; or why that cannot be done."""
    from loopcanary.assembly import attaching

    return attaching.detach(pid, timeout_s)
