"""Running programs that take their stalls themselves, and why; and their tracers: for `loopcanary doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from loopcanary import flight
from loopcanary.assembly.kept import FLIGHT_FOLDER, NO_KEEPER, OWN_CODE
from loopcanary.assembly.store import Autopsy
from loopcanary.assembly.tracing.asking import statuses_in
from loopcanary.engine.flight_place import place_in_memory
from loopcanary.model.figures.tracers import TracerState
from loopcanary.store.recovery.flight_folder import FLIGHT, FlightFolder
from loopcanary.words.lives import tracer_words
from loopcanary.words.text import count_of, printable

Row = tuple[str, str, str]
_SHOWN_MAX = 8


def program_facts(folder: Path) -> Iterator[Row]:
    """(name, `ok` | `off` | `problem`, detail) of those that run with the store in this folder now."""
    programs = list(_facts(folder / FLIGHT_FOLDER))
    for name, say in (("program", _said), ("tracers", _tracers)):
        found = sorted(row for facts in programs for row in say(facts))
        yield from ((name, status, line) for status, line in found[:_SHOWN_MAX])
        if len(found) > _SHOWN_MAX:
            yield name, "ok", f"{count_of(len(found) - _SHOWN_MAX, 'more')}"


def _facts(folder: Path) -> Iterator[dict[str, Any]]:
    """Of each that runs."""
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
                facts = None if autopsy.is_dead(file) else file.facts()
        except (flight.FlightError, OSError):
            continue  # it has just begun, or ended
        if facts is not None:
            yield facts


def _said(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Nothing where a keeper takes its stalls."""
    if isinstance(reason := facts.get(NO_KEEPER), str):
        yield "off", f"{_who(facts)} takes its stalls itself: {printable(reason, 200)}"
    elif isinstance(own := facts.get(OWN_CODE), str):
        yield (
            "ok",
            f"{_who(facts)} judges what has ended itself, for {printable(own, 100)}; a keeper tells hangs",
        )


def _tracers(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each with what it does."""
    for one in statuses_in(facts):
        status = "problem" if one.failed else "ok" if one.state is TracerState.STARTED else "off"
        yield status, f"{printable(one.name, 80)} of {_who(facts)}: {tracer_words(one)}"


def _who(facts: dict[str, Any]) -> str:
    return printable(f"{facts.get('name')} (pid {facts.get('pid')})", 120)
