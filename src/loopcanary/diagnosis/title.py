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
    Cause.HOST: "the host did not run the ready thread",
    Cause.UNKNOWN: "blocked",
}
_EVERYWHERE = frozenset({"__init__.py", "__main__.py"})
"""Names of files that say nothing without their folder."""
_NOT_ABOUT_THE_CALL = frozenset({Cause.GC, Cause.BURST})


def make_title(
    evidence: StallEvidence,
    cause: Cause,
    culprit: Culprit | None,
    blocker: Blocker | None,
    holder: Holder | None,
) -> str:
    """Such as `time.sleep(0.3) in handler (app.py:41)`."""
    if cause is Cause.GIL and holder is not None:
        return f"GIL held by {holder.thread}{_in(holder.culprit or culprit)}"
    if cause is Cause.BURST:
        mostly = f", mostly{_in(culprit)}" if culprit is not None else ""
        return f"{evidence.turn_callbacks:,} callbacks in one turn{mostly}"
    what = _WORDS[cause]
    if cause is Cause.HOST:
        return what  # it strikes any code, and its stalls of many places are one group
    if cause not in _NOT_ABOUT_THE_CALL and blocker is not None:
        what = blocker.call or f"{blocker.function}()"
    return f"{what}{_in(culprit)}" if culprit is not None else f"{what} in {_work(evidence)}"


def _work(evidence: StallEvidence) -> str:
    if evidence.names is not None and evidence.names.name:
        return evidence.names.name
    thread = evidence.thread_name or evidence.loop_kind
    return f"the loop of {thread}" if evidence.scope is StallScope.TURN else f"a callback of {thread}"


def _in(culprit: Culprit | None) -> str:
    if culprit is None:
        return ""
    folder, _, name = culprit.file.replace("\\", "/").rpartition("/")
    if name in _EVERYWHERE:
        name = f"{folder.rpartition('/')[2]}/{name}"
    return f" in {culprit.function} ({name}:{culprit.line})"
