"""What a sample says of the wait it was taken in: numbers and texts of the file as values."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from loopcanary.flight import format as layout
from loopcanary.flight.format import LockKind
from loopcanary.model import LockProof, LockView, Target, TargetKind
from loopcanary.model.waiting import (
    FUTURE,
    IMPORT_LOCK,
    SHARED_LOCK,
    SHARED_RLOCK,
    SHARED_SEMAPHORE,
    THREAD_END,
)

_TARGETS: Final = {
    layout.TargetCode.FILE: TargetKind.FILE,
    layout.TargetCode.SOCKET: TargetKind.SOCKET,
    layout.TargetCode.PIPE: TargetKind.PIPE,
    layout.TargetCode.TERMINAL: TargetKind.TERMINAL,
    layout.TargetCode.CHILD: TargetKind.CHILD,
    layout.TargetCode.OTHER: TargetKind.OTHER,
}
_LOCKS: Final = {
    LockKind.PLAIN: "lock",
    LockKind.RECURSIVE: "RLock",
    LockKind.MODULE: IMPORT_LOCK,
    LockKind.THREAD: THREAD_END,
    LockKind.FUTURE: FUTURE,
    LockKind.SHARED: SHARED_LOCK,
    LockKind.SHARED_RECURSIVE: SHARED_RLOCK,
    LockKind.SHARED_SEMAPHORE: SHARED_SEMAPHORE,
}
_PROOFS: Final = {layout.ProofCode.OWNER: LockProof.OWNER, layout.ProofCode.WITH: LockProof.WITH}


# Each sample of a wait says the same: what is equal is one object.
@lru_cache(maxsize=64)
def target_of(kind: int, name: str | None, pid: int) -> Target | None:
    """What the system call worked on; None for none, and for a kind that has no name here."""
    known = _TARGETS.get(kind)  # type: ignore[call-overload]
    return None if known is None else Target(kind=known, name=name or "", pid=pid or None)


@lru_cache(maxsize=64)
def lock_view(kind: int, proof: int, module: str | None, frame: int) -> LockView | None:
    """The lock that was waited for. `module`: whose import lock it is, where it is one. `frame`: as in
    `lc_sample_entry`."""
    known = _LOCKS.get(kind)  # type: ignore[call-overload]
    if known is None:
        return None
    if kind == LockKind.MODULE and module:
        known = f"{known} of {module}"
    return LockView(kind=known, proof=_PROOFS.get(proof, LockProof.NONE), taken_at=frame or None)  # type: ignore[call-overload]
