"""When what was left on in a window is reported: looks at given times, in limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from loopcanary.tracers.windows.watch import HARMLESS, Harm, LeftOn, WindowWatch

LIMIT_NS = 10_000_000_000
BAD = Harm("QLabel")
SLOW = Harm("WaitCursor", 6)


@dataclass
class Window:
    """A state that is on from 0 on, what looks find, and when it was told."""

    told: list[tuple[str, float]] = field(default_factory=list)
    now: float = 0
    is_gone: bool = False

    def __post_init__(self) -> None:
        self.watch = WindowWatch(LIMIT_NS, self._told, lambda: int(self.now * LIMIT_NS))
        places = ((_left.__code__, 1),)
        self.watch.on("key", "updates-disabled", lambda: None if self.is_gone else self, lambda: places)

    def _told(self, state: LeftOn, lasted_ns: int) -> None:
        self.told.append((state.seen, lasted_ns / LIMIT_NS))

    def look(self, at: float, found: Harm | None, running: Any = ()) -> bool:
        self.now = at
        return self.watch.look(lambda _: found, running)


def _left() -> None: ...


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        pytest.param([(0.55, BAD), (1.1, BAD)], [1.1], id="harm at two looks, longer than the limit"),
        pytest.param([(0.55, BAD), (1.1, BAD), (1.65, BAD)], [1.1], id="once"),
        pytest.param([(2.0, BAD)], [], id="one look says nothing: the loop was busy before it"),
        pytest.param([(2.0, BAD), (2.55, BAD)], [2.55], id="a loop that was busy, and is healthy now"),
        pytest.param([(0.3, BAD), (0.85, BAD), (1.4, BAD)], [1.4], id="looks at other times"),
        pytest.param([(0.55, BAD), (0.9, BAD)], [], id="shorter than the limit"),
        pytest.param([(0.55, BAD), (1.1, HARMLESS), (1.65, BAD)], [], id="harmless between two looks"),
        pytest.param([(0.55, BAD), (1.1, None), (1.65, BAD)], [], id="off at a look"),
        pytest.param([(0.55, SLOW), (1.1, SLOW), (5.5, SLOW)], [], id="what may be meant for a while"),
        pytest.param([(5.5, SLOW), (6.05, SLOW)], [6.05], id="what was meant for too long"),
    ],
)
def test_it_is_reported_after_two_looks_on_a_healthy_loop(looks, told):
    window = Window()
    for at, found in looks:
        window.look(at, found)
    assert [when for _, when in window.told] == pytest.approx(told)


def test_what_a_running_function_left_on_is_not_reported():
    window = Window()
    wants_more = [window.look(at, BAD, {_left.__code__}) for at in (0.55, 1.1, 1.65)]
    assert (window.told, wants_more) == ([], [True] * 3)


@pytest.mark.parametrize(
    ("found", "is_gone", "told"),
    [(BAD, False, [("QLabel", 0.7)]), (BAD, True, []), (HARMLESS, False, [])],
    ids=["it is there still", "it is gone", "it did no harm"],
)
def test_at_the_end_it_is_reported_earlier(found, is_gone, told):
    window = Window()
    window.look(0.55, found)
    window.now, window.is_gone = 0.7, is_gone
    window.watch.end()
    assert window.told == told


def test_the_end_says_nothing_of_what_was_switched_off():
    window = Window()
    window.look(0.55, BAD)
    window.watch.off("key")
    window.watch.end()
    assert window.told == []


def test_a_lost_look_is_asked_for_again():
    window = Window()
    asked = [(window.watch.wants_look(), setattr(window, "now", at))[0] for at in (1.0, 1.7, 9.0)]
    assert asked == [True, False, True]
