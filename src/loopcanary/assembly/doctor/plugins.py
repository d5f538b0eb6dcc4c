"""What is registered, built in and by third parties, and what cannot be loaded: for `loopcanary doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing

from loopcanary import store
from loopcanary.assembly.store import open_store
from loopcanary.engine.apart import Apart
from loopcanary.model import Config
from loopcanary.model.search import IssueQuery
from loopcanary.registry import GROUPS, REGISTRY, Registration

Row = tuple[str, str, str]

_WENT_WRONG = (
    ("", "it failed in the latest run, and was switched off"),
    ("end of ", "it failed at the end of the latest run"),
    ("issue of ", "what it reported in the latest run was refused"),
)
"""Parts of a run that a plugin is in, by the prefix of its name."""


def plugin_facts(settings: Config) -> Iterator[Row]:
    """(name, `ok` | `off` | `problem`, detail): what is built in group by group, others one by one."""
    if os.environ.get("LOOPCANARY_PLUGINS") == "0":
        yield "plugins", "off", "LOOPCANARY_PLUGINS=0: no plugins are loaded, only built-in parts"
    failures: dict[str, int] | None = None
    for group in GROUPS:
        found = REGISTRY.of(group)
        if built_in := [one for one in found if one.is_built_in]:
            yield _built_in(group, built_in)
        for one in found:
            if not one.is_built_in:
                failures = _failures_of_latest_run(settings) if failures is None else failures
                yield _other(one, failures)
    for group in GROUPS:
        for one in REGISTRY.installed(group):
            if REGISTRY.find(group, one.name) is not one:
                yield _name(one), "problem", f"of {one.origin}: not loaded, its name is already taken"


def _built_in(group: str, registered: Sequence[Registration]) -> Row:
    problems = {one.name: problem for one in registered if (problem := _problem(one))}
    words = [", ".join(one.name for one in registered if one.name not in problems)]
    words += [f"{name} cannot be loaded: {problem}" for name, problem in problems.items()]
    return f"built-in {group.rpartition('.')[2]}", "off" if problems else "ok", "; ".join(words)


def _other(one: Registration, failures: dict[str, int]) -> Row:
    if problem := _problem(one):
        return _name(one), "problem", f"of {one.origin}: {problem}"
    wrong = [words for part, words in _WENT_WRONG if f"{part}{_name(one)}" in failures]
    return _name(one), "problem" if wrong else "ok", "; ".join([f"of {one.origin}", *wrong])


def _name(one: Registration) -> str:
    group = one.group.rpartition(".")[2]
    kind = f"{group[:-3]}y" if group.endswith("ies") else group.removesuffix("s")
    return f"{kind} {one.name}"


def _problem(one: Registration) -> str | None:
    """Why it cannot be loaded; None: it can."""
    try:
        one.load() if one.is_built_in else Apart(None, str).bounded(one.load)
    except Exception as error:  # noqa: BLE001 - a third party's package, or a library that is not there
        return f"{type(error).__name__}: {error}"
    return None


def _failures_of_latest_run(settings: Config) -> dict[str, int]:
    """By part; none where no run has come to its end."""
    try:
        folder = store.find(settings.store).folder
        with closing(open_store(folder)) as opened:
            sessions = opened.reader.sessions(IssueQuery(), 1)
    except store.StoreError:
        return {}
    counts = sessions[0].statistics if sessions else {}
    prefix = "failures_"
    return {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}
