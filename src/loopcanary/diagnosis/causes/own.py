"""gil or lock, held by a thread of loopcanary's own: said to be ours, blamed on no line of the program."""

from __future__ import annotations

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, Holder
from loopcanary.model.stall import is_own_thread
from loopcanary.words.sentences import say

_OTHERS = frozenset({Owner.OWN, Owner.OTHER, Owner.INSTALLED})


def find_own(observation: Observation) -> Finding | None:
    """By samples that name such a thread as the holder, unless it ran what the program or a package plugged
    in. Asked before all that look for holders. A stall that has a cause of the program's is that cause's."""
    explained = observation.select_each(lambda seen: _is_held_by_us(observation, seen))
    if not explained:
        return None
    by_gil = [seen for seen in explained if seen.sample.lock is None]
    is_gil = 2 * len(by_gil) >= len(explained)
    share = observation.share(explained)
    name = observation.threads.get(explained[0].sample.holder_tid or 0, "")
    return Finding(
        cause=Cause.GIL if is_gil else Cause.LOCK,
        share=share,
        confidence=0.95,
        evidence=(
            say("held-by-us", some=observation.of_all(explained), what="the GIL" if is_gil else "a lock"),
        ),
        explained=explained,
        holders=(Holder(thread=name, culprit=None, share=round(share, 4), lock=_kind(explained, is_gil)),),
        title="own-work",
        topic="own-work",
        blameless=True,
        yields=True,
    )


def _kind(explained: tuple[WeighedSample, ...], is_gil: bool) -> str | None:
    locks = [seen.sample.lock.kind for seen in explained if seen.sample.lock is not None]
    return None if is_gil or not locks else locks[0]


def _is_held_by_us(observation: Observation, seen: WeighedSample) -> bool:
    sample = seen.sample
    if not sample.holder_tid or not is_own_thread(observation.threads.get(sample.holder_tid, "")):
        return False
    if sample.lock is None and not sample.waits_for_gil:
        return False
    stack = sample.holder_stack
    return stack is None or not any(
        function.owner in _OTHERS for function in observation.place(stack).path.whole
    )
