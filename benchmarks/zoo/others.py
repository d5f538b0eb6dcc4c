"""The results on loops other than asyncio's, for the pages: which were played, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zoo.catalogue import Kind
from zoo.loops import OTHERS
from zoo.totals import cell
from zoo.trial import Trial


def played(trials: Sequence[Trial]) -> list[str]:
    """Their names, in the order of the catalogue's."""
    there = {trial.loop for trial in trials if trial.outcome == "played"}
    return [name for name in OTHERS if name in there]


def title(loop: str, about: dict[str, Any]) -> str:
    """The loop with its version, and with Python's where that is not the page's."""
    facts = about.get("loops", {}).get(loop, {})
    named = f"{OTHERS[loop].title} {facts.get('version', '')}".strip()
    python = facts.get("python", about["machine"]["python"])
    return named if python == about["machine"]["python"] else f"{named} (CPython {python})"


def introduction(trials: Sequence[Trial], kinds: Sequence[Kind]) -> str:
    """The sentences above the table: the kinds, the peers and the number of runs."""
    known = {kind.name: kind for kind in kinds}
    counts = []
    for loop in played(trials):
        names = {trial.kind for trial in trials if trial.loop == loop and trial.kind in known}
        controls = sum(known[name].control for name in names)
        counts.append((len(names) - controls, controls))
    here = [trial for trial in trials if trial.loop in OTHERS]
    disturbed = sum(trial.disturbed for trial in here)
    least, most = ([pick(count[part] for count in counts) for part in (0, 1)] for pick in (min, max))
    return (
        f"{_from_to(least[0], most[0])} kinds and {_from_to(least[1], most[1])} controls on each: those that "
        "need nothing of asyncio's, as callbacks, tasks or frames of that loop, and some that only it can "
        "have. Peers that watch asyncio only are not played; the heartbeat that feeds faulthandler is a "
        f"timer of that loop. {len(here)} runs; in {disturbed} of them other work "
        "kept the program from running, so only detection, function and line are judged."
    )


def _from_to(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"


def cells(trials: Sequence[Trial], kinds: Sequence[Kind], watcher: str) -> Iterator[tuple[Kind, list[str]]]:
    """One watcher's kinds, with a cell for each loop; empty where a kind is not of that loop."""
    names = played(trials)
    here = [trial for trial in trials if trial.watcher == watcher and trial.loop in names]
    for kind in kinds:
        own = [trial for trial in here if trial.kind == kind.name]
        if own:
            yield kind, [cell([trial for trial in own if trial.loop == loop]) for loop in names]
