"""From a verdict to a sentence that names the way out. The sentences: words.remedies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from loopcanary.diagnosis.code.call_sites import callee_of
from loopcanary.model import Blocker, Cause, Holder
from loopcanary.registry import REGISTRY, REMEDIES
from loopcanary.words.remedies import ALIASES, OTHER, Remedy, Way
from loopcanary.words.sentences import advice, say

_ASYNCIO = "asyncio"
_THREAD_HELPS = frozenset({Way.THREAD, Way.CLIENT, Way.RESOLVE, Way.CHILD, Way.TIMER})
_ABOUT_NO_CALL = frozenset({Cause.GC, Cause.HOST, Cause.BURST, Cause.GIL, Cause.IMPORT})
"""Causes whose remedy is not about the call that the thread happened to be in."""


class RemedyTable:
    """Remedies by what they are about. Of rows that fit, the first is taken."""

    def __init__(self, rows: Iterable[Remedy]) -> None:
        self.by_last_name: dict[str, list[tuple[str, Remedy]]] = {}
        """By the last part of a call's name; with the whole name."""
        self.by_module: dict[str, list[Remedy]] = {}
        self.frameworks: list[Remedy] = []
        self._by_loop: dict[tuple[str, object], Remedy] = {}
        for row in rows:
            self._add(row)
        self._loops = {loop for loop, _ in self._by_loop if loop}

    def _add(self, row: Remedy) -> None:
        for name in row.calls:
            self.by_last_name.setdefault(name.rpartition(".")[2], []).append((name, row))
        for module in row.modules:
            self.by_module.setdefault(module, []).append(row)
        if row.within:
            self.frameworks.append(row)
        elif not row.calls and not row.modules:
            for about in (row.topic,) if row.topic else (*row.causes,) or (row.way,):
                self._by_loop.setdefault((row.loop, about), row)

    def loop_of(self, kind: str) -> str:
        """The loop in whose words a kind of loop is advised."""
        name = kind.lower() or _ASYNCIO
        name = next((other for alias, other in ALIASES.items() if name.startswith(alias)), name)
        return next((loop for loop in self._loops if name.startswith(loop)), OTHER)

    def about(self, about: str | Cause | Way, loop: str) -> Remedy | None:
        """The row of a topic, cause or way for a loop, else for any."""
        return self._by_loop.get((loop, about)) or self._by_loop.get(("", about))

    def way_out(self, way: Way, loop: str) -> Remedy:
        """The row of a way for a loop, else for a loop that no row is for."""
        return self._by_loop.get((loop, way)) or self._by_loop[OTHER, way]


@cache
def registered() -> RemedyTable:
    """The table of all rows that are registered: third parties' first."""
    rows = REGISTRY.loaded(REMEDIES)
    others = [row for one, found in rows if not one.is_built_in for row in found if isinstance(row, Remedy)]
    return RemedyTable([*others, *(row for one, found in rows if one.is_built_in for row in found)])


def advise(
    cause: Cause,
    blocker: Blocker | None,
    reached: Iterable[str],
    loop: str,
    *,
    topic: str | None = None,
    holder: Holder | None = None,
    within: frozenset[str] = frozenset(),
    table: RemedyTable | None = None,
) -> str | None:
    """One or two sentences, or None where no row fits.

    Args:
        cause: The cause of the stall.
        blocker: What the culprit was doing.
        reached: Names of the modules below the culprit, outermost first.
        loop: The kind of loop.
        topic: What the finding is about, if that is more than its cause.
        holder: The thread that held what the stalled one waited for.
        within: The packages that the stacks lead through.
        table: The rows to choose from.
    """
    table = table or registered()
    loop = table.loop_of(loop)
    row = None if topic is None else table.about(topic, loop)
    if row is not None:
        return _fill(row, blocker, holder)
    if cause not in _ABOUT_NO_CALL:
        row = find_remedy(table, cause, blocker, reached)
    row = row or table.about(cause, loop) or table.about(cause, _ASYNCIO)
    if row is None:
        return None
    if loop == _ASYNCIO:
        return _in_framework(table, row, within, blocker)
    return _fill(row if row.way is None else table.way_out(row.way, loop), blocker, holder)


def find_remedy(
    table: RemedyTable, cause: Cause, blocker: Blocker | None, reached: Iterable[str]
) -> Remedy | None:
    """The row for a call: by the call as written, by modules it reached, by a name that fits any receiver,
    by its bare name."""
    callee = callee_of(blocker.call) if blocker is not None and blocker.call else None
    named = [] if callee is None else table.by_last_name.get(callee.rpartition(".")[2], [])
    fitting = [(name, remedy) for name, remedy in named if _fits(remedy, cause)]
    for name, remedy in fitting:
        if callee is not None and _is_call(callee, name):
            return remedy
    found = _by_reached(table, cause, tuple(reached))
    if found is not None or callee is None:
        return found
    for name, remedy in fitting:
        if "." in callee:
            if name.startswith("*."):
                return remedy
        elif remedy.causes:  # `from time import sleep`: the bare name, where the cause supports it
            return remedy
    return None


def _fits(remedy: Remedy, cause: Cause) -> bool:
    return not remedy.causes or cause in remedy.causes


def _is_call(callee: str, name: str) -> bool:
    """A name without a dot is a built-in's: `sum(...)`, but not `frame.sum()`."""
    if callee == name:
        return True
    return "." in name and name[0] != "*" and callee.endswith((f".{name}", f"_{name}"))


def _by_reached(table: RemedyTable, cause: Cause, reached: tuple[str, ...]) -> Remedy | None:
    """The outermost package that the table knows; within it the row for its innermost part, such as
    `logging.handlers` of `logging`."""
    for root in dict.fromkeys(module.partition(".")[0] for module in reached):
        inside = [module for module in reached if module.partition(".")[0] == root]
        packages = {package for module in inside for package in _packages(module)}
        for package in sorted(packages, key=lambda name: (-name.count("."), name)):
            for remedy in table.by_module.get(package, ()):
                if _fits(remedy, cause):
                    return remedy
    return None


def _packages(module: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def _in_framework(table: RemedyTable, row: Remedy, within: frozenset[str], blocker: Blocker | None) -> str:
    """The row's sentence, or the one that replaces it in a framework; and what that offers beside."""
    around = [remedy for remedy in table.frameworks if remedy.within in within]
    chosen = next((remedy for remedy in around if row.id in remedy.replaces), row)
    beside = [remedy for remedy in around if not remedy.replaces and row.way in _THREAD_HELPS][:1]
    first, *rest = [_fill(remedy, blocker, None) for remedy in (chosen, *beside)]
    return say("both", first=first, second=rest[0]) if rest else first


def _fill(remedy: Remedy, blocker: Blocker | None, holder: Holder | None) -> str:
    values: dict[str, object] = {}
    if "{call}" in remedy.text:
        values["call"] = None if blocker is None else blocker.call
    if "{holder}" in remedy.text:
        values["holder"] = None if holder is None or holder.culprit is None else holder.culprit.function
    return advice(remedy, values)
