"""From a verdict to a sentence that names the way out. The sentences: remedies.py."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.diagnosis.calls import callee_of
from loopcanary.diagnosis.remedies import BY_CAUSE, ELSEWHERE, REMEDIES, Remedy
from loopcanary.model import Blocker, Cause

_ASYNCIO_LOOPS = frozenset({"asyncio", "uvloop", ""})
_ABOUT_NO_CALL = frozenset({Cause.GC, Cause.HOST, Cause.BURST, Cause.GIL, Cause.IMPORT})
"""Causes whose remedy is not about the call that the thread happened to be in."""


def advise(cause: Cause, blocker: Blocker | None, reached: Iterable[str], loop: str) -> str | None:
    """One sentence, or None where nothing useful can be said. `reached`: names of the modules below the
    culprit, outermost first; `loop`: the kind of loop."""
    if cause not in _ABOUT_NO_CALL:
        remedy = _find(cause, blocker, tuple(reached))
        if remedy is not None:
            sentence = _word(remedy, cause, loop)
            return sentence.replace("{call}", _call(blocker)) if sentence else None
    return _by_cause(cause, loop)


def _find(cause: Cause, blocker: Blocker | None, reached: tuple[str, ...]) -> Remedy | None:
    fitting = [remedy for remedy in REMEDIES if not remedy.causes or cause in remedy.causes]
    callee = callee_of(blocker.call) if blocker is not None and blocker.call else None
    if callee is not None:
        for remedy in fitting:
            if any(_is_call(callee, name) for name in remedy.names):
                return remedy
    for module in reached:
        for remedy in fitting:
            if any(module == name or module.startswith(f"{name}.") for name in remedy.modules):
                return remedy
    # `from time import sleep`: the bare name, where the cause supports it.
    named = (remedy for remedy in fitting if remedy.causes and "." not in (callee or "."))
    return next(
        (remedy for remedy in named if any(name.rpartition(".")[2] == callee for name in remedy.names)), None
    )


def _is_call(callee: str, name: str) -> bool:
    return callee == name or callee.endswith((f".{name}", f"_{name}"))


def _word(remedy: Remedy, cause: Cause, loop: str) -> str | None:
    if loop in _ASYNCIO_LOOPS:
        return remedy.asyncio
    return remedy.elsewhere or _by_cause(cause, loop)


def _by_cause(cause: Cause, loop: str) -> str | None:
    if loop not in _ASYNCIO_LOOPS and cause in ELSEWHERE:
        return ELSEWHERE[cause]
    return BY_CAUSE.get(cause)


def _call(blocker: Blocker | None) -> str:
    return blocker.call if blocker is not None and blocker.call else "the call"
