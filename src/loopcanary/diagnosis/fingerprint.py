"""The identity of the bug behind a stall: the same over runs, hosts and shifts of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

try:
    from _blake2 import blake2s  # what hashlib gives, without OpenSSL: two megabytes in a watched process
except ImportError:  # an interpreter that hashes in another way
    from hashlib import blake2s

from loopcanary.diagnosis.code.call_sites import callee_of
from loopcanary.diagnosis.code.ownership import CodePaths, Owner, Ownership, captured, portable_path
from loopcanary.diagnosis.culprit.suspect import STEADY_SHARE
from loopcanary.model import Cause, Culprit, Holder, StackFrame, Stall
from loopcanary.model.loop_frames import work_of
from loopcanary.model.stack_frame import plain_function
from loopcanary.model.stall import chief_holders
from loopcanary.words.android import LOOPER

VERSION = 6
"""Raised when the same stall would get another fingerprint than before."""
_DIGITS = 12
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_])\d+")

_OBJECT_NAME = re.compile(r' "[^"]*"(?=: |$)')
"""What the program calls one of its objects: `QPushButton "buy": Timer`."""

_AROUND_SHARE = 2 / 3
_CALLED_BACK_SHARE = 0.85
_ENTERED_SHARE = 1 / 2
_PYTHON_SHARE = 1 / 3
_HELD = frozenset({Cause.GIL, Cause.LOCK})
_COMPUTING = frozenset({Cause.CPU, Cause.NATIVE_CPU})
_ASKED_FOR = "gc.collect"


def fingerprint(stall: Stall, paths: CodePaths) -> str:
    """The fingerprint: `6:` and twelve hexadecimal digits. Line numbers, times, processes and hosts do not
    count."""
    digest = blake2s("\0".join(explain(stall, paths)).encode("utf-8", "replace"))
    return f"{VERSION}:{digest.hexdigest()[:_DIGITS]}"


def explain(stall: Stall, paths: CodePaths | None = None) -> tuple[str, ...]:
    """The parts of a fingerprint, in order, each as `name=value`. `paths`: those that the stall was judged
    with; None: this process's."""
    identity = _identity(stall, paths or captured())
    # Whether the holder struck a callback or the loop between two is chance, and where a crash came, too.
    is_held = stall.blamed_holder is not None or _is_ours(stall)
    return identity if is_held or stall.cause is Cause.CRASH else (f"scope={stall.scope.value}", *identity)


def _identity(stall: Stall, paths: CodePaths) -> tuple[str, ...]:
    cause = f"cause={stall.cause.value}"
    if stall.cause is Cause.HOST or (stall.cause is Cause.GC and not _is_asked_for(stall)):
        return (cause,)  # they strike code by chance: all their stalls of one scope are one group
    if _is_ours(stall):
        return (cause, "holder=loopcanary")
    if stall.blamed_holder is not None:
        return (cause, *_holders(stall, stall.blamed_holder, paths))
    if stall.cause is Cause.BURST:
        return (cause, *(_top_contributor(stall) or _steady_place(stall, paths)))
    if stall.culprit is None and stall.cause is Cause.CRASH:
        return (cause,) if stall.killed_by is None else (cause, f"signal={stall.killed_by.signal}")
    if stall.culprit is None:
        return (f"callback={_plain_name(stall.callback)}",)
    if _computes_in_python(stall, stall.culprit):
        return _place("culprit", _around(stall, stall.culprit), paths)
    place = _place("culprit", stall.culprit, paths)
    reached = _reached(stall, stall.culprit)
    found = (*place, f"blocker={reached}") if reached else place
    return (cause, *found) if stall.cause is Cause.CRASH else found


def _holders(stall: Stall, first: Holder, paths: CodePaths) -> Iterator[str]:
    """The places of all chief holders: of threads that compute alike, each may be the one that held the GIL
    longer."""
    for holder in chief_holders(stall.holders or (first,)):
        if holder.culprit is not None:
            yield from _place("holder", holder.culprit, paths)


def _is_ours(stall: Stall) -> bool:
    return stall.cause in _HELD and stall.holder is not None and stall.holder.is_ours


def _computes_in_python(stall: Stall, culprit: Culprit) -> bool:
    """Whether Python code computed: alone, for a third of what C calls and it computed together, or that of a
    library, where how much of it is in C differs from run to run."""
    if stall.cause not in _COMPUTING or stall.loop == LOOPER:
        return False
    total = sum(stack.weight_ns for stack in stall.stacks)
    if sum(time for name, time in _below(stall, culprit).items() if name) >= _ENTERED_SHARE * total > 0:
        return True
    shares = {
        cause: sum(part.share for part in stall.portions if part.cause is cause) for cause in _COMPUTING
    }
    return stall.cause is Cause.CPU or shares[Cause.CPU] >= _PYTHON_SHARE * sum(shares.values()) > 0


def _around(stall: Stall, culprit: Culprit) -> Culprit | StackFrame:
    """The innermost function that held two thirds of the time, from the culprit outwards. Of functions that
    call each other, another one may hold half, as the culprit did, in the next run. What a library calls back
    has to hold more: where it works itself, too, it was called for a reason further out."""
    own = [stack for stack in stall.stacks if any(frame.in_app for frame in stack.frames)]
    held: dict[tuple[str, str], int] = {}
    for stack in own:
        for place in {(frame.file, frame.qualname) for frame in stack.frames if frame.in_app}:
            held[place] = held.get(place, 0) + stack.weight_ns
    total = sum(stack.weight_ns for stack in own)
    for stack in own:
        places = [(frame.file, frame.qualname) for frame in stack.frames]
        if (culprit.file, culprit.qualname) in places:
            frames = work_of(stack.frames[places.index((culprit.file, culprit.qualname)) :])
            for index, frame in enumerate(frames):
                share = _CALLED_BACK_SHARE if _is_called_back(frames[index + 1 :]) else _AROUND_SHARE
                if frame.in_app and held[frame.file, frame.qualname] >= share * total:
                    return frame
            return culprit
    return culprit


def _is_called_back(callers: Sequence[StackFrame]) -> bool:
    """Whether a library called, and the program that."""
    return bool(callers) and not callers[0].in_app and any(frame.in_app for frame in callers)


def _is_asked_for(stall: Stall) -> bool:
    callee = callee_of(stall.blocker.call) if stall.blocker is not None and stall.blocker.call else None
    return callee is not None and (callee == _ASKED_FOR or _ASKED_FOR.endswith(f".{callee}"))


def _top_contributor(stall: Stall) -> tuple[str, ...]:
    """The callback that took most of the turn's callbacks' time, where one did."""
    total = sum(entry.total_ns for entry in stall.contributors)
    top = stall.contributors[0] if stall.contributors else None
    if top is None or top.total_ns < STEADY_SHARE * total:
        return ()
    return (f"contributor={_plain_name(top.name)}",)


def _plain_file(culprit: Culprit | StackFrame, paths: CodePaths) -> str:
    """The file's portable path; of the standard library the module only, whose files move: `pathlib.py` is
    `pathlib/__init__.py` since 3.13."""
    path = portable_path(culprit.file, paths)
    if culprit.in_app or Ownership(paths).of(culprit.file) is not Owner.STDLIB:
        return path
    return path.removesuffix(".py").partition("/")[0]


def _place(role: str, culprit: Culprit | StackFrame, paths: CodePaths) -> tuple[str, str]:
    return (
        f"{role}.file={_plain_file(culprit, paths)}",
        f"{role}.function={plain_function(culprit.qualname)}",
    )


def _plain_name(name: str | None) -> str:
    """A callback's name without addresses and numbers: `<function f at 0x7f..>`, `worker-12`; but
    `step2` keeps its number. Without names of single objects, too."""
    return _NUMBER.sub("#", _ADDRESS.sub("0x", _OBJECT_NAME.sub("", name or "?")))


def _reached(stall: Stall, culprit: Culprit) -> str:
    """The plain name of what the culprit called: `get` of `requests.get(url)`, and equally of the frame
    `get` under the culprit, so that a host without the source text gives the same. Empty where none was
    steady."""
    callee = callee_of(stall.blocker.call) if stall.blocker is not None and stall.blocker.call else None
    if callee is not None:
        return callee.rpartition(".")[2]
    below = _below(stall, culprit)
    best = max(below, key=lambda name: below[name], default="")
    return best if below and below[best] >= STEADY_SHARE * sum(below.values()) else ""


def _below(stall: Stall, culprit: Culprit) -> dict[str, int]:
    """By the name of what the culprit called, the time in which it did; by the empty one that in which its
    frame was the innermost one."""
    held: dict[str, int] = {}
    for stack in stall.stacks:
        for index, frame in enumerate(stack.frames):
            if (frame.file, frame.qualname) == (culprit.file, culprit.qualname):
                name = _call_name(stack.frames[index - 1].qualname) if index else ""
                held[name] = held.get(name, 0) + stack.weight_ns
                break
    return held


def _call_name(qualname: str) -> str:
    """The name that a call of a function is written with: that of the class for its construction."""
    outer, _, name = qualname.rpartition(".")
    return outer.rpartition(".")[2] if name in ("__init__", "__new__") and outer else name


def _steady_place(stall: Stall, paths: CodePaths) -> tuple[str, ...]:
    """A burst's culprit, where it held most of its time. What it called differs from turn to turn."""
    culprit = stall.culprit
    if culprit is None:
        return ()
    place = (culprit.file, culprit.qualname)
    total = sum(stack.weight_ns for stack in stall.stacks)
    held = sum(
        stack.weight_ns
        for stack in stall.stacks
        if any((frame.file, frame.qualname) == place for frame in stack.frames)
    )
    return _place("culprit", culprit, paths) if total > 0 and held >= STEADY_SHARE * total else ()
