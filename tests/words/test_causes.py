"""A cause is in every place that speaks of causes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.building.stalls import GETS, frame, stall

import loopcanary.ui
from loopcanary.model import Cause
from loopcanary.model.stall import WeightedStack
from loopcanary.words.causes import cause_words

STYLE = Path(loopcanary.ui.__file__).parent / "static" / "loopcanary.css"


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_a_cause_has_words_a_colour_and_a_place_in_the_docs(cause: Cause, tree: Path) -> None:
    assert cause_words(cause)
    has_colour = f".c-{cause.value} " in STYLE.read_text("utf-8")
    assert has_colour or cause is Cause.UNKNOWN  # the colour of all others
    for page in ("docs/reference/glossary.md", "docs/internals/diagnosis.md"):
        assert f"| {cause.value} |" in (tree / page).read_text("utf-8"), page


def waits(*places: tuple[str, str]) -> WeightedStack:
    """Innermost first."""
    frames = (frame(qualname, f"/usr/lib/python3.13/{file}", 1) for file, qualname in places)
    return WeightedStack(weight_ns=10, frames=tuple(frames))


IN_CONDITION = ("threading.py", "Condition.wait")


@pytest.mark.parametrize(
    ("stacks", "words"),
    [
        ([GETS], "waiting for an item in a queue"),
        ([waits(IN_CONDITION, ("threading.py", "Event.wait"))], "waiting for an event"),
        ([waits(IN_CONDITION, ("futures/_base.py", "Future.result"))], "waiting for the result of a Future"),
        ([GETS, GETS, waits(("worker.py", "main"))], "waiting for an item in a queue"),
        ([GETS, waits(("worker.py", "main"))], "waiting for a lock"),
        ([waits(("queue.py", "Queue.get"))], "waiting for a lock"),  # the queue's own
        ([waits(IN_CONDITION, ("pool.py", "Queue.get"))], "waiting for a lock"),
        ([waits(IN_CONDITION)], "waiting for a lock"),
        ([], "waiting for a lock"),
    ],
)
def test_what_a_condition_is_for_is_no_lock(stacks, words):
    found = stall(cause=Cause.LOCK, stacks=tuple(stacks))
    assert cause_words(Cause.LOCK, found) == words
    assert cause_words(Cause.SLEEP, found) == "sleeping"
