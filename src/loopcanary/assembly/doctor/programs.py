"""Running programs that take their stalls themselves, and why: for `loopcanary doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from loopcanary import flight
from loopcanary.assembly.kept import FLIGHT_FOLDER, OWN_CODE
from loopcanary.assembly.store import NO_KEEPER, Autopsy
from loopcanary.engine.flight_place import place_in_memory
from loopcanary.store.recovery.flight_folder import FLIGHT, FlightFolder
from loopcanary.words.text import count_of, printable

Row = tuple[str, str, str]
_SHOWN_MAX = 8


def program_facts(folder: Path) -> Iterator[Row]:
    """(name, `ok` | `off`, detail) of those that run with the store in this folder now."""
    found = sorted(_lines(folder / FLIGHT_FOLDER))
    yield from (("program", status, line) for status, line in found[:_SHOWN_MAX])
    if len(found) > _SHOWN_MAX:
        yield "program", "ok", f"{count_of(len(found) - _SHOWN_MAX, 'more')}"


def _lines(folder: Path) -> Iterator[tuple[str, str]]:
    """Those of which something is to be said."""
    try:
        with FlightFolder(folder, place_in_memory) as opened:
            entries = [opened.find(name) for name in opened.names() if name.endswith(FLIGHT)]
    except OSError:
        return
    autopsy = Autopsy()
    for entry in entries:
        if entry is None or entry.file is None or not entry.is_ours:
            continue
        try:
            with closing(autopsy.open(entry.path)) as file:
                said = None if autopsy.is_dead(file) else _said(file.facts())
        except (flight.FlightError, OSError):
            continue  # it has just begun, or ended
        if said is not None:
            yield said


def _said(facts: dict[str, Any]) -> tuple[str, str] | None:
    """None: a keeper takes its stalls."""
    who = printable(f"{facts.get('name')} (pid {facts.get('pid')})", 120)
    if isinstance(reason := facts.get(NO_KEEPER), str):
        return "off", f"{who} takes its stalls itself: {printable(reason, 200)}"
    if isinstance(own := facts.get(OWN_CODE), str):
        return "ok", f"{who} judges what has ended itself, for {printable(own, 100)}; a keeper tells hangs"
    return None
