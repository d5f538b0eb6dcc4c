"""One word for a thread that does not respond, by the first rule that holds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from loopcanary.model import LockProof, LockView, Sample, Stack, StallEvidence, StateWord

from .cases import MS, evidence, frame, judged, kernel, samples, stack

S = 1_000 * MS
HERE = stack(frame("handler", line=7))
THERE = stack(frame("handler", line=8))
CONNECT = stack(frame("connect", line=7))
EVERY_NS = 100 * MS


def seen(*stacks: Stack | None, apart_ns: int = EVERY_NS, **more: object) -> tuple[Sample, ...]:
    """Looks 100 ms apart at a thread that is blocked."""
    view = kernel("S", "recvfrom") if "kernel" not in more else more.pop("kernel")
    return tuple(
        Sample(at_ns=20 * MS + index * apart_ns, stack=one, kernel=view, **more)
        for index, one in enumerate(stacks)
    )


def stalled(taken: tuple[Sample, ...]) -> StallEvidence:
    return evidence(taken, sample_interval_ns=EVERY_NS, lasted_ms=taken[-1].at_ns // MS + 80)


OWN_LOCK = {"lock": LockView(kind="lock", proof=LockProof.WITH), "holder_tid": 70}
OTHERS_LOCK = OWN_LOCK | {"holder_tid": 71}


@dataclass(frozen=True, slots=True)
class Story:
    sentence: str
    what: StallEvidence
    word: StateWord | None


STORIES = [
    Story("a short stall has no word", evidence(samples(*[HERE] * 12)), None),
    Story("in one line to the end it is hung", stalled(seen(*[HERE] * 12)), StateWord.HUNG),
    Story("how it began does not count", stalled(seen(*[THERE] * 5, *[HERE] * 7)), StateWord.HUNG),
    Story("from line to line it is slow", stalled(seen(*[HERE, THERE] * 6)), StateWord.SLOW),
    Story("blocked, and nothing seen, it is hung", stalled(seen(None, *[None] * 11)), StateWord.HUNG),
    Story(
        "a lock that it holds itself is a deadlock",
        stalled(seen(*[HERE] * 12, kernel=kernel("S", "futex"), **OWN_LOCK)),
        StateWord.DEADLOCKED,
    ),
    Story(
        "a lock that another thread holds is none",
        stalled(seen(*[HERE] * 12, kernel=kernel("S", "futex"), **OTHERS_LOCK)),
        StateWord.HUNG,
    ),
    Story(
        "a connect of 3 s finds no living peer",
        stalled(seen(*[CONNECT] * 40, kernel=kernel("S", "connect"))),
        StateWord.PEER_DEAD,
    ),
    Story(
        "a connect of 2 s may be answered yet",
        stalled(seen(*[CONNECT] * 21, kernel=kernel("S", "connect"))),
        StateWord.HUNG,
    ),
    Story(
        "stopped by a signal it is stopped, whatever it waits for",
        stalled(seen(*[HERE] * 12, kernel=kernel("T"), **OWN_LOCK)),
        StateWord.STOPPED,
    ),
    Story(
        "ready and not run it is starved",
        stalled(
            tuple(
                Sample(
                    at_ns=20 * MS + index * EVERY_NS,
                    stack=HERE,
                    kernel=kernel("R", on_cpu=index * 5 * MS, queue=index * 95 * MS),
                )
                for index in range(12)
            )
        ),
        StateWord.STARVED,
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=[story.sentence.replace(" ", "-") for story in STORIES])
def test_the_word_of_a_stall(story: Story) -> None:
    stall = judged(story.what)
    assert stall.state_word is story.word, (stall.cause, stall.evidence)
