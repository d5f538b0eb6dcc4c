"""The table of remedies, and the row for a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from loopcanary.diagnosis.code.call_sites import callee_of, operator_of
from loopcanary.model import Blocker, Cause
from loopcanary.registry import REGISTRY, REMEDIES
from loopcanary.words.remedies import ALIASES, OTHER, Remedy, Way

ASYNCIO = "asyncio"
_BUILT_INS = frozenset({"list", "sum", "min", "max", "sorted", "str", "eval", "exec"})
"""They do what others have them do: `list(rows)`."""
_ENOUGH = 0.25
"""Of the culprit's time, what leads to a row by the modules that were reached."""


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
        name = kind.lower() or ASYNCIO
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


def find_remedy(
    table: RemedyTable,
    cause: Cause,
    blocker: Blocker | None,
    reached: Mapping[tuple[str, ...], int],
    origin: str | None = None,
) -> Remedy | None:
    """The row for a call: by the call as written, by modules it reached, by a name that fits any receiver, by
    its bare name.

    `reached`: the modules below the culprit, outermost first, and the time that led through them. `origin`:
    what made the call's receiver.
    """
    text = None if blocker is None else blocker.call
    callee = None if text is None else callee_of(text)
    named = _by_name(table, cause, _from(origin, callee)) or _by_name(table, cause, callee)
    found = _by_reached(table, cause, reached)
    if named is not None and (found is None or not (callee in _BUILT_INS or _is_elsewhere(named, reached))):
        return named
    if found is not None or text is None:
        return found
    if callee is None:
        return _by_name(table, cause, operator_of(text))
    return _by_last_name(table, cause, callee)


def _from(origin: str | None, callee: str | None) -> str | None:
    return None if origin is None or callee is None else f"{origin}.{callee.rpartition('.')[2]}"


def _by_name(table: RemedyTable, cause: Cause, callee: str | None) -> Remedy | None:
    if callee is None:
        return None
    rows = _fitting(table, cause, callee)
    return next((remedy for name, remedy in rows if _is_call(callee, name)), None)


def _by_last_name(table: RemedyTable, cause: Cause, callee: str) -> Remedy | None:
    for name, remedy in _fitting(table, cause, callee):
        if "." in callee:
            if name.startswith("*."):
                return remedy
        elif remedy.causes:  # `from time import sleep`: the bare name, where the cause supports it
            return remedy
    return None


def _fitting(table: RemedyTable, cause: Cause, callee: str) -> Iterator[tuple[str, Remedy]]:
    for name, remedy in table.by_last_name.get(callee.rpartition(".")[2], ()):
        if _fits(remedy, cause):
            yield name, remedy


def _fits(remedy: Remedy, cause: Cause) -> bool:
    return not remedy.causes or cause in remedy.causes


def _is_call(callee: str, name: str) -> bool:
    """A name without a dot is a built-in's: `sum(...)`, but not `frame.sum()`."""
    if callee == name:
        return True
    return "." in name and name[0] != "*" and callee.endswith((f".{name}", f"_{name}"))


def _is_elsewhere(remedy: Remedy, reached: Iterable[tuple[str, ...]]) -> bool:
    """Whether the row's packages were not reached, though others were: a queue that is multiprocessing's."""
    roots = {module.partition(".")[0] for modules in reached for module in modules}
    return bool(remedy.modules) and roots.isdisjoint(name.partition(".")[0] for name in remedy.modules)


def _by_reached(table: RemedyTable, cause: Cause, reached: Mapping[tuple[str, ...], int]) -> Remedy | None:
    """The row to which most of the time leads, if that is enough."""
    held: dict[str, int] = {}
    rows: dict[str, Remedy] = {}
    for modules, weight in reached.items():
        row = _of_modules(table, cause, modules)
        if row is not None:
            rows[row.id] = row
            held[row.id] = held.get(row.id, 0) + weight
    best = max(held, key=lambda name: held[name], default=None)
    return None if best is None or held[best] < _ENOUGH * sum(reached.values()) else rows[best]


def _of_modules(table: RemedyTable, cause: Cause, reached: tuple[str, ...]) -> Remedy | None:
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
