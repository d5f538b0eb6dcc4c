"""From a verdict to a sentence that names the way out. The sentences: the package remedies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from loopcanary.diagnosis.calls import callee_of
from loopcanary.diagnosis.remedies import (
    BY_CAUSE,
    BY_TOPIC,
    ELSEWHERE,
    IN_ENDPOINTS,
    IN_GAMES,
    REMEDIES,
    TOPICS_OF_ASYNCIO,
    WAY_OF_CAUSE,
    Family,
    Remedy,
    Way,
    family_of,
)
from loopcanary.model import Blocker, Cause, Holder

_ASYNCIO_LOOPS = frozenset({"asyncio", "uvloop", ""})
_THREAD_HELPS = frozenset({Way.THREAD, Way.CLIENT, Way.RESOLVE, Way.CHILD, Way.TIMER})
_ABOUT_NO_CALL = frozenset({Cause.GC, Cause.HOST, Cause.BURST, Cause.GIL, Cause.IMPORT})
"""Causes whose remedy is not about the call that the thread happened to be in."""


def advise(
    cause: Cause,
    blocker: Blocker | None,
    reached: Iterable[str],
    loop: str,
    *,
    topic: str | None = None,
    holder: Holder | None = None,
    within: frozenset[str] = frozenset(),
) -> str | None:
    """One sentence, or None where nothing useful can be said. `reached`: names of the modules below the
    culprit, outermost first; `loop`: the kind of loop; `topic`: what the finding is about, if that is more
    than its cause; `within`: the packages that the stacks lead through."""
    if topic is not None and (loop in _ASYNCIO_LOOPS or topic not in TOPICS_OF_ASYNCIO):
        return _fill(BY_TOPIC[topic], blocker, holder)
    if cause not in _ABOUT_NO_CALL:
        remedy = find_remedy(cause, blocker, reached)
        if remedy is not None:
            return _fill(_word(remedy, loop, within), blocker, holder) + _in_endpoint(
                remedy.way, loop, within
            )
    words = _by_cause(cause, loop, blocker)
    return words and words + _in_endpoint(WAY_OF_CAUSE.get(cause), loop, within)


def find_remedy(cause: Cause, blocker: Blocker | None, reached: Iterable[str]) -> Remedy | None:
    """The entry of the table: by the call as written, by the modules it reached, by a name that fits any
    receiver, by its bare name."""
    callee = callee_of(blocker.call) if blocker is not None and blocker.call else None
    named = [] if callee is None else _by_last_name().get(callee.rpartition(".")[2], [])
    fitting = [(name, remedy) for name, remedy in named if _fits(remedy, cause)]
    for name, remedy in fitting:
        if callee is not None and _is_call(callee, name):
            return remedy
    found = _by_reached(cause, tuple(reached))
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


def _by_reached(cause: Cause, reached: tuple[str, ...]) -> Remedy | None:
    """The outermost package that the table knows; within it the entry for its innermost part, such as
    `logging.handlers` of `logging`."""
    for root in dict.fromkeys(module.partition(".")[0] for module in reached):
        inside = [module for module in reached if module.partition(".")[0] == root]
        packages = {package for module in inside for package in _packages(module)}
        for package in sorted(packages, key=lambda name: (-name.count("."), name)):
            for remedy in _by_module().get(package, ()):
                if _fits(remedy, cause):
                    return remedy
    return None


def _packages(module: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while module:
        yield module
        module = module.rpartition(".")[0]


@cache
def _by_last_name() -> dict[str, list[tuple[str, Remedy]]]:
    table: dict[str, list[tuple[str, Remedy]]] = {}
    for remedy in REMEDIES:
        for name in remedy.names:
            table.setdefault(name.rpartition(".")[2], []).append((name, remedy))
    return table


@cache
def _by_module() -> dict[str, list[Remedy]]:
    table: dict[str, list[Remedy]] = {}
    for remedy in REMEDIES:
        for module in remedy.modules:
            table.setdefault(module, []).append(remedy)
    return table


def _word(remedy: Remedy, loop: str, within: frozenset[str]) -> str:
    if loop in _ASYNCIO_LOOPS:
        return next((words for package, words in remedy.within if package in within), remedy.asyncio)
    family = family_of(loop)
    special = (remedy.elsewhere or {}).get(family)
    return special or ELSEWHERE[family][remedy.way]


def _in_endpoint(way: Way | None, loop: str, within: frozenset[str]) -> str:
    """What frameworks of ASGI offer beside: they run a plain function on a thread. No help for what holds the
    GIL."""
    if loop not in _ASYNCIO_LOOPS or way not in _THREAD_HELPS:
        return ""
    return next((f" {words}" for package, words in IN_ENDPOINTS.items() if package in within), "")


def _by_cause(cause: Cause, loop: str, blocker: Blocker | None) -> str | None:
    way: Way | None = WAY_OF_CAUSE.get(cause)
    if family_of(loop) is Family.GAME and cause in IN_GAMES:
        return IN_GAMES[cause]
    if loop not in _ASYNCIO_LOOPS and way is not None:
        return _fill(ELSEWHERE[family_of(loop)][way], blocker, None)
    return BY_CAUSE.get(cause)


def _fill(sentence: str, blocker: Blocker | None, holder: Holder | None) -> str:
    call = f"`{blocker.call}`" if blocker is not None and blocker.call else "the call"
    culprit = None if holder is None else holder.culprit
    place = "the thread that holds it" if culprit is None else f"`{culprit.function}`"
    return sentence.replace("`{call}`", call).replace("{holder}", place)
