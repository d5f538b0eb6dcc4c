"""One line that says what happened where."""

from __future__ import annotations

from loopcanary.model import Blocker, Cause, Culprit, Holder, StallEvidence, StallScope

_WORDS = {
    Cause.CPU: "Python code computing",
    Cause.NATIVE_CPU: "a C call computing",
    Cause.GIL: "waiting for the GIL",
    Cause.SLEEP: "sleeping",
    Cause.LOCK: "waiting for a lock",
    Cause.DISK_IO: "disk I/O",
    Cause.NETWORK_IO: "network I/O",
    Cause.DNS: "resolving a name",
    Cause.SUBPROCESS: "waiting for a child process",
    Cause.GC: "garbage collection",
    Cause.IMPORT: "importing modules",
    Cause.BURST: "many callbacks in one turn",
    Cause.HOST: "ready but not run by the host",
    Cause.UNKNOWN: "blocked",
}
_NOT_ABOUT_THE_CALL = frozenset({Cause.GC, Cause.HOST, Cause.BURST})


def make_title(
    evidence: StallEvidence,
    cause: Cause,
    culprit: Culprit | None,
    blocker: Blocker | None,
    holder: Holder | None,
) -> str:
    """Such as `time.sleep(0.3) in handler (app.py:41)`."""
    if cause is Cause.GIL and holder is not None:
        if holder.culprit is None:
            return f"GIL held by {holder.thread}{_in(culprit)}"
        return f"GIL held by {holder.thread}{_in(holder.culprit)}"
    if cause is Cause.BURST:
        return f"{evidence.turn_callbacks:,} callbacks in one turn{_mostly(culprit)}"
    what = _WORDS[cause]
    if cause not in _NOT_ABOUT_THE_CALL and blocker is not None:
        what = blocker.call or f"{blocker.function}()"
    if culprit is not None:
        return f"{what}{_in(culprit)}"
    if evidence.names is not None:
        return f"{what} in {evidence.names.name}"
    if evidence.scope is StallScope.TURN:
        return f"{what} in the loop of {evidence.thread_name or evidence.loop_kind}"
    return f"{what} in a callback of {evidence.thread_name or evidence.loop_kind}"


def _in(culprit: Culprit | None) -> str:
    if culprit is None:
        return ""
    name = culprit.file.replace("\\", "/").rpartition("/")[2]
    return f" in {culprit.function} ({name}:{culprit.line})"


def _mostly(culprit: Culprit | None) -> str:
    return f", mostly{_in(culprit)}" if culprit is not None else ""
