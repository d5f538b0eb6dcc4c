"""What a thread waited for, and who held it, in words that console and reports share. One line, printable."""

from __future__ import annotations

from loopcanary.model.stall import Cause, Holder, Portion, Stall
from loopcanary.model.timeline import Doing
from loopcanary.model.units import format_duration
from loopcanary.model.waiting import (
    IMPORT_LOCK,
    THREAD_END,
    Contributor,
    LockProof,
    Target,
    TargetKind,
)
from loopcanary.words.text import count_of, place, printable

_NAME_MAX = 60
_PLACES_MAX = 2
_YIELDS = {Cause.GC: "which this set off"}
"""What is said of causes that yield to a smaller one."""
_OURS = "which is loopcanary's own work"
_KIND_WORDS = {
    TargetKind.FILE: "file",
    TargetKind.SOCKET: "socket to",
    TargetKind.PIPE: "pipe",
    TargetKind.TERMINAL: "terminal",
    TargetKind.CHILD: "child process",
    TargetKind.OTHER: "",
}
DOING_WORDS = {
    Doing.ON_CPU: "on a CPU",
    Doing.READY: "ready, not run",
    Doing.GIL_WAIT: "waiting for the GIL",
    Doing.GC: "collecting garbage",
    Doing.BLOCKED: "blocked",
    Doing.STOPPED: "stopped",
    Doing.UNKNOWN: "unknown",
}
"""Of a thread in a span of time."""
_PROOF_WORDS = {
    LockProof.OWNER: "the lock itself says so",
    LockProof.WITH: "it is inside a with block of this lock",
    LockProof.NONE: "not certain",
}


def target_words(target: Target, limit: int = 200) -> str:
    """`file /var/log/app.log`, `socket to 10.0.0.5:5432`, `child process sleep (pid 12)`."""
    kind = _KIND_WORDS[target.kind]
    name = printable(target.name, limit)
    if not name:
        kind = kind.removesuffix(" to") or "a descriptor"
    pid = f" (pid {target.pid})" if target.pid is not None else ""
    return f"{kind} {name}".strip() + pid


def proof_words(lock: str, proof: LockProof) -> str:
    """How it is known who holds a lock of this kind: `it is inside a with block of this lock`."""
    if lock.startswith(IMPORT_LOCK) and proof is LockProof.WITH:
        return "it is importing the module"
    return _PROOF_WORDS[proof]


def share_words(share: float) -> str:
    """`62 %`, `0.4 %`, `under 0.1 %` for what would round to none."""
    percent = share * 100
    if 0 < percent < 0.05:
        return "under 0.1 %"
    return f"{percent:.{1 if 0 < percent < 9.95 else 0}f} %"


_STATES = {
    "R": "runnable",
    "S": "sleeping",
    "D": "in uninterruptible sleep",
    "T": "stopped by a signal",
    "t": "stopped by a debugger",
    "Z": "ended",
}


def state_words(letter: str) -> str:
    """What the letter of /proc/TID/stat says of a thread: `sleeping`; another letter as `state X`."""
    return _STATES.get(letter) or f"state {printable(letter, _NAME_MAX)}"


def thread_by_name(name: str) -> str:
    """`thread pool-1`; one that has no name goes by `thread 4711` as it is."""
    shown = printable(name, _NAME_MAX)
    is_nameless = shown.startswith("thread ") and shown.removeprefix("thread ").isdigit()
    return shown if is_nameless else f"thread {shown}"


def holder_label(holder: Holder) -> str:
    """What comes before the holder's words: `held by`, or `waited for` where the end of the thread was."""
    return "waited for" if holder.lock == THREAD_END else "held by"


def did_words(holder: Holder, cause: Cause) -> str:
    """What the line of a holder did: `held the GIL`, `held the lock`, `was waited for`."""
    if holder.lock == THREAD_END:
        return "was waited for"
    return "held the GIL" if cause is Cause.GIL else "held the lock"


def held_in(stall: Stall, portion: Portion) -> Holder | None:
    """Who held what the stalled thread waited for in a part of the stall, where its line is known."""
    if portion.cause not in (Cause.GIL, Cause.LOCK):
        return None
    is_gil = portion.cause is Cause.GIL
    return next((one for one in stall.holders if one.culprit and (one.lock is None) == is_gil), None)


def held_words(lock: str | None, holder: str) -> str:
    """`RLock held by pool-1`, `GIL held by pool-1`, `thread pool-1 running`; `lock`: None for the GIL."""
    return f"thread {holder} running" if lock == THREAD_END else f"{lock or 'GIL'} held by {holder}"


def lock_words(lock: str | None, holder: str | None) -> str:
    """`for RLock, held by pool-1`, `held by pool-1` of the GIL, `for the end of thread pool-1`; empty where
    neither is known."""
    if lock == THREAD_END:
        return f"for the end of thread {holder}" if holder else "for the end of a thread"
    return ", ".join([*([f"for {lock}"] if lock else []), *([f"held by {holder}"] if holder else [])])


def holder_words(holder: Holder) -> str:
    """Which thread, how much of the stall, what it held, how that is known: `thread pool-1`, `thread pool-1
    for 62 %, holding the RLock (the lock itself says so)`."""
    words = thread_by_name(holder.thread)
    if holder.share < 0.995:
        words += f" for {share_words(holder.share)}"
    if holder.lock == THREAD_END:
        return words  # what a join waits for: the thread runs, and holds nothing
    if holder.lock is not None:
        words += f", holding the {printable(holder.lock, _NAME_MAX)}"
    if holder.proof is not None:
        words += f" ({proof_words(holder.lock or '', holder.proof)})"
    return words


def contributor_words(contributor: Contributor) -> str:
    """`handle x812, 310 ms`."""
    name = printable(contributor.name, _NAME_MAX)
    return f"{name} x{contributor.count:,}, {format_duration(contributor.total_ns)}"


def scheduler_words(contributor: Contributor, folder: str = "") -> str:
    """`scheduled at app.py:12`, `scheduled at app.py:12 (812), feed.py:7 (30) and 4 more places`; empty where
    it is not known."""
    known = contributor.scheduled
    if not known:
        return ""
    alone = len(known) == 1 and known[0].count == contributor.count
    places = [
        place(one.file, one.line, folder) + ("" if alone else f" ({one.count:,})")
        for one in known[:_PLACES_MAX]
    ]
    more = count_of(len(known) - _PLACES_MAX, "more place") if len(known) > _PLACES_MAX else ""
    return f"scheduled at {', '.join(places)}" + (f" and {more}" if more else "")


def second_cause_words(stall: Stall) -> str:
    """`25 % lock`, of a stall that had two causes; else empty. Where the second one took more time, why it
    is the second: `23 % of it; 69 % gc, which this set off`."""
    if stall.second_cause is None or stall.second_cause is Cause.UNKNOWN:
        return ""
    words = f"{share_words(stall.second_share)} {stall.second_cause.value}"
    reason = _YIELDS.get(stall.second_cause)
    if stall.cause not in (Cause.GIL, Cause.LOCK) and stall.holder is not None and stall.holder.is_ours:
        reason = _OURS
    if stall.second_share <= stall.cause_share or reason is None:
        return words
    return f"{share_words(stall.cause_share)} of it; {words}, {reason}"
