"""Running programs that judge their stalls themselves, and why; their tracers; rights that only our threads
have left in them; what is replaced in one (`loopcanary doctor --patches`)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from signal import Signals
from typing import Any

from loopcanary import flight
from loopcanary.assembly.errands.asking import watched
from loopcanary.assembly.kept import FLIGHT_FOLDER, NO_KEEPER
from loopcanary.assembly.store import Autopsy
from loopcanary.engine.flight_place import place_in_memory
from loopcanary.engine.traced import TRACERS
from loopcanary.flight.beside.patches import BYTES_MAX, LINE_MAX, patches_in
from loopcanary.flight.source import open_source
from loopcanary.model.method_map import PATCHES
from loopcanary.model.tracer_states import TracerState, TracerStatus
from loopcanary.outside.processes import OutsideError
from loopcanary.store.recovery.flight_folder import FLIGHT, FlightFolder
from loopcanary.whose_folder import below, owner
from loopcanary.wire import WireError, from_wire
from loopcanary.words.lives import tracer_words
from loopcanary.words.text import count_of, printable

Row = tuple[str, str, str]
_SHOWN_MAX = 8
_OWN_NAME = "loopcanary"
"""Of the native engine's threads, for the kernel (native/module/quiet_thread.c)."""
_PROGRAM = """
import asyncio, sys
asyncio.run(asyncio.sleep(0))
from loopcanary.patches import noted
sys.stdout.buffer.write(noted())
"""
_STATES = {
    "+": ("on", ""),
    "-": ("off", ": undone"),
    "!": ("left", ": another tool has patched over it"),
}
_SIGNALS = {("signal", str(int(one))): one.name for one in Signals}


def program_facts(folder: Path) -> Iterator[Row]:
    """(name, `ok` | `off` | `problem`, detail) of those that run with the store in this folder now."""
    programs = list(_facts(folder))
    for name, say in (("program", _said), ("tracers", _tracers), ("rights", _rights)):
        found = sorted(row for facts in programs for row in say(facts))
        yield from ((name, status, line) for status, line in found[:_SHOWN_MAX])
        if len(found) > _SHOWN_MAX:
            yield name, "ok", f"{count_of(len(found) - _SHOWN_MAX, 'more')}"


def _facts(folder: Path) -> Iterator[dict[str, Any]]:
    lender = owner(str(folder))
    try:
        path = Path(below(str(folder), FLIGHT_FOLDER, theirs=True))
        opened = FlightFolder(path, place_in_memory, lender=lender)
    except OSError:
        return
    autopsy = Autopsy()
    with opened:
        for entry in (opened.find(name) for name in opened.names() if name.endswith(FLIGHT)):
            if entry is None or entry.file is None or not (lender or entry.is_ours):
                continue
            try:
                with closing(autopsy.open(entry.path)) as file:
                    facts = None if autopsy.is_dead(file) else file.facts()
            except (flight.FlightError, OSError):
                continue  # it has just begun, or ended
            if facts is not None:
                yield facts


def _said(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Nothing where a keeper judges its stalls."""
    if isinstance(reason := facts.get(NO_KEEPER), str):
        yield "off", f"{_who(facts)} diagnoses its own stalls: {printable(reason, 200)}"


def _tracers(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    try:
        found = [from_wire(TracerStatus, one) for one in facts.get(TRACERS, ())]
    except (WireError, TypeError):  # of another version
        return
    for one in found:
        status = "problem" if one.failed else "ok" if one.state is TracerState.STARTED else "off"
        yield status, f"{printable(one.name, 80)} of {_who(facts)}: {tracer_words(one)}"


def _rights(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where threads of ours may do more than the main thread."""
    threads = Path(f"/proc/{facts.get('pid')}/task")
    try:
        mains, *others = map(_status, (threads / str(facts.get("pid")), *threads.iterdir()))
    except OSError:
        return  # it has just ended, or is of another pid namespace
    more = {words for one in others if one["Name"] == _OWN_NAME for words in _more(one, mains)}
    if more:
        told = ", ".join(sorted(more))
        yield "off", f"{_who(facts)}: threads of loopcanary have more privileges than its main thread: {told}"


def _status(thread: Path) -> dict[str, str]:
    lines = (thread / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _more(own: dict[str, str], mains: dict[str, str]) -> Iterator[str]:
    if int(own["CapEff"], 16) & ~int(mains["CapEff"], 16):
        yield f"CapEff {own['CapEff']}, not {mains['CapEff']}"
    for name in ("NoNewPrivs", "Seccomp", "Seccomp_filters"):
        if int(own.get(name, "0")) < int(mains.get(name, "0")):
            yield f"{name} {own[name]}, not {mains[name]}"


def _who(facts: dict[str, Any]) -> str:
    return printable(f"{facts.get('name')} (pid {facts.get('pid')})", 120)


# ---- patches -------------------------------------------------------------------------------------


def patches_of(pid: int) -> list[tuple[str, str, str]]:
    """(kind, `on` | `off` | `left` | `problem`, what) of the process, which may hang: nothing is asked of it.
    0: of a small program of asyncio under the settings in force here."""
    try:
        content = _written(pid) if pid else _tried()
    except (OutsideError, flight.FlightError, OSError, subprocess.SubprocessError) as error:
        return [("patches", "problem", str(error))]
    named = [(state, kind, _SIGNALS.get((kind, what), what)) for state, kind, what in patches_in(content)]
    rows = sorted({(kind, _STATES[state][0], what + _STATES[state][1]) for state, kind, what in named})
    if len(content.rstrip(b"\0")) > BYTES_MAX - LINE_MAX:
        rows.append(("patches", "off", "there may be more: the list is full"))
    return rows or [("patches", "off", "no patch is listed")]


def _written(pid: int) -> bytes:
    with closing(open_source(watched(pid)[1] + PATCHES)) as source:
        return source.read(0, min(source.size, BYTES_MAX))


def _tried() -> bytes:
    with tempfile.TemporaryDirectory(prefix="loopcanary-") as store:
        command = [sys.executable, "-P", "-m", "loopcanary", "run", "--quiet", "--store", store]
        return subprocess.run(  # noqa: S603 - ourselves
            [*command, "-c", _PROGRAM], check=True, capture_output=True, timeout=60
        ).stdout
