"""One line that says what happened where."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
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
_MOSTLY = 0.5


def make_title(
    evidence: StallEvidence,
    finding: Finding | None,
    culprit: Culprit | None,
    blocker: Blocker | None,
    holder: Holder | None,
) -> str:
    """Such as `time.sleep(0.3) in handler (app.py:41)`. `finding`: of the cause; None: unknown."""
    cause = Cause.UNKNOWN if finding is None else finding.cause
    if finding is not None and finding.title is not None:
        # What strikes any code names none: its stalls of many places are one group.
        return finding.title if finding.blameless else f"{finding.title}{_in(culprit)}"
    if cause is Cause.GIL and holder is not None:
        return f"GIL held by {holder.thread}{_in(holder.culprit or culprit)}"
    if cause is Cause.LOCK and holder is not None and holder.lock is not None:
        return f"waiting for {holder.lock} held by {holder.thread}{_in(holder.culprit or culprit)}"
    if cause is Cause.BURST:
        return f"{evidence.turn_callbacks:,} callbacks in one turn{_mostly(evidence, culprit)}"
    what = _WORDS[cause]
    if blocker is not None:
        what = blocker.call or f"{blocker.function}()"
    return f"{what}{_in(culprit)}" if culprit is not None else f"{what} in {_work(evidence)}"


def _mostly(evidence: StallEvidence, culprit: Culprit | None) -> str:
    if not evidence.contributors:
        return f", mostly{_in(culprit)}" if culprit is not None else ""
    top = evidence.contributors[0]
    word = "mostly" if top.total_ns >= _MOSTLY * evidence.turn_callback_ns else "first of all"
    return f", {word} {top.name}"


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
