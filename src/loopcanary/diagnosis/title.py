"""One line that says what happened where."""

from __future__ import annotations

from collections.abc import Sequence

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.causes.waits import Polling
from loopcanary.diagnosis.culprit.circles import Circle
from loopcanary.model import Blocker, Cause, Culprit, Holder, StallEvidence, StallScope
from loopcanary.model.stall import chief_holders
from loopcanary.model.waiting import THREAD_END
from loopcanary.words.sentences import Sentence, say
from loopcanary.words.titles import TITLES
from loopcanary.words.waiting import thread_by_name

_EVERYWHERE = frozenset({"__init__.py", "__main__.py"})
"""Names of files that say nothing without their folder."""
_MOSTLY = 0.5


def make_title(
    evidence: StallEvidence,
    finding: Finding | None,
    culprit: Culprit | None,
    blocker: Blocker | None,
    holders: Sequence[Holder],
    *,
    polling: Polling | None,
    circle: Circle | None = None,
) -> str:
    """Such as `time.sleep(0.3) in handler (app.py:41)`. `finding`: of the cause; None: unknown."""
    if circle is not None:
        threads = [wait.thread for wait in circle.members]
        what = "circular-wait" if circle.timed else "deadlock"
        return say(f"title:{what}", threads=threads, place=_place(culprit))
    cause = Cause.UNKNOWN if finding is None else finding.cause
    if finding is not None and finding.title is not None:
        # What strikes any code names none: its stalls of many places are one group.
        what = say(f"title:{finding.title}") if finding.title in TITLES else finding.title
        if finding.blameless:
            return what
        return _of(what, evidence, culprit)
    call = None if blocker is None else blocker.call or f"{blocker.function}()"
    if evidence.fault is not None:
        code = "title:stack-over" if evidence.fault.is_stack_over else "title:crashed"
        return say(code, signal=evidence.fault.signal, call=call, place=_place(culprit))
    if holders and (cause is Cause.GIL or (cause is Cause.LOCK and holders[0].lock is not None)):
        return _held(holders, culprit)
    if cause is Cause.BURST:
        return say("title:callbacks", count=evidence.turn_callbacks, most=_most(evidence, culprit))
    if polling is not None:
        return _of(say("title:polling", call=polling.call), evidence, culprit)
    what = say(f"title:{cause.value}")
    return _of(call or what, evidence, culprit)


def _of(what: str, evidence: StallEvidence, culprit: Culprit | None) -> Sentence:
    if culprit is None:
        return say("title:what-in", what=what, work=_work(evidence))
    return say("title:what", what=what, place=_place(culprit))


def _held(holders: Sequence[Holder], culprit: Culprit | None) -> Sentence:
    chief = chief_holders(holders) or holders[:1]
    holder, place = chief[0], _place(chief[0].culprit or culprit)
    if holder.lock is None:
        return say("title:gil-held", holder=holder.thread, place=place, also=_also(chief[1:]))
    if holder.lock == THREAD_END:
        return say("title:thread-runs", holder=thread_by_name(holder.thread), place=place)
    return say("title:lock-held", lock=holder.lock, holder=holder.thread, place=place, also=_also(chief[1:]))


def _also(others: Sequence[Holder]) -> Sentence | None:
    if len(others) == 1:
        return say("title:what", what=others[0].thread, place=_place(others[0].culprit))
    return say("more", count=len(others)) if others else None


def _most(evidence: StallEvidence, culprit: Culprit | None) -> Sentence | None:
    if not evidence.contributors:
        return None if culprit is None else say("title:mostly", what=_place(culprit))
    top = evidence.contributors[0]
    mostly = top.total_ns >= _MOSTLY * evidence.turn_callback_ns
    return say("title:mostly" if mostly else "title:first-of-all", what=top.name)


def _work(evidence: StallEvidence) -> str:
    if evidence.names is not None and evidence.names.name:
        return evidence.names.name
    code = "title:loop-of" if evidence.scope is StallScope.TURN else "title:callback-of"
    return say(code, thread=evidence.thread_name or evidence.loop_kind)


def _place(culprit: Culprit | None) -> Sentence | None:
    if culprit is None:
        return None
    return say("title:place", function=culprit.function, file=_short_file(culprit.file), line=culprit.line)


def short_place(file: str, line: int) -> str:
    """`app.py:41`."""
    return f"{_short_file(file)}:{line}"


def _short_file(file: str) -> str:
    folder, _, name = file.replace("\\", "/").rpartition("/")
    return f"{folder.rpartition('/')[2]}/{name}" if name in _EVERYWHERE else name
