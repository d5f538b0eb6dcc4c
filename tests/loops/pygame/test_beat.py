"""The beat of a game on a virtual clock: which calls are work, which are waits, and what becomes of frames
and input."""

from __future__ import annotations

from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from loopcanary.probes.pygame_beat import Beat

MS = 1_000_000
KEY, MOTION = 768, 1024


class Hooks:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append(" ".join([name, *args]))


class Frames:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.told.append((name, *args))


class Game:
    """A game on a clock of its own; `spend` is what a call of pygame's takes."""

    def __init__(self, *, trouble: bool = False) -> None:
        self.now = 0
        self.hooks, self.frames, self.input = Hooks(), Frames(), Frames()
        self.failures: list[Exception] = []
        self.hertz: float | None = 60.0
        self.beat = Beat(
            self.hooks,
            refresh_hz=lambda: self.hertz,
            is_input=lambda kind: kind == KEY,
            event_name=lambda kind: {KEY: "KeyDown"}[kind],
            contain=self.contain,
            clock=lambda: self.now,
        )

        def frames(_: str) -> Frames:
            if trouble:
                raise RuntimeError("no frames today")
            return self.frames

        self.beat.tracers = SimpleNamespace(frames=frames, input=lambda _: self.input)

    def contain(self, function: Any) -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001 - as the boundary does
            self.failures.append(error)

    def spend(self, ms: float, result: Any = None) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            self.now += round(ms * MS)
            return result

        return call

    def flip(self, ms: float = 0) -> None:
        self.beat.flip(self.spend(ms), (), {})

    def tick(self, ms: float, *target: float) -> None:
        self.beat.tick(self.spend(ms), target, {})

    def get(self, *kinds: int) -> list[Any]:
        return self.beat.look(self.spend(0, [SimpleNamespace(type=kind) for kind in kinds]), (), {})


@pytest.fixture
def game() -> Any:
    made = Game()
    yield made
    assert made.failures == []


WAIT = ["work_end", "wait_begin", "wait_end", "work_begin frame"]


def test_nothing_is_watched_before_the_first_flip(game):
    game.get()
    game.tick(16)
    assert game.hooks.calls == []
    game.flip()
    assert game.hooks.calls == ["run_begin", *WAIT]


@pytest.mark.parametrize("call", ["flip", "tick", "wait", "look", "await_event", "modal"])
def test_what_lies_between_two_calls_is_work_and_the_call_is_a_wait(game, call):
    game.flip()
    del game.hooks.calls[:]
    assert getattr(game.beat, call)(game.spend(5, "answer"), (), {}) == "answer"
    assert game.hooks.calls == WAIT


@pytest.mark.parametrize("call", ["flip", "tick", "wait", "look", "await_event", "modal"])
def test_an_error_of_the_programs_goes_through_and_the_wait_is_over(game, call):
    game.flip()
    del game.hooks.calls[:]

    def fail(*_: Any) -> None:
        raise OSError("no screen")

    with pytest.raises(OSError, match="no screen"):
        getattr(game.beat, call)(fail, (), {})
    assert game.hooks.calls == WAIT


def test_other_threads_go_through_untouched(game):
    game.flip()
    del game.hooks.calls[:]
    answers: list[Any] = []

    def other() -> None:
        for call in ("flip", "tick", "wait", "look", "await_event", "modal"):
            answers.append(getattr(game.beat, call)(lambda *_: "through", (), {}))  # noqa: PERF401

    thread = Thread(target=other)
    thread.start()
    thread.join()
    assert answers == ["through"] * 6
    assert game.hooks.calls == []


def test_a_frame_is_told_when_it_is_shown(game):
    game.flip(2)
    game.now += 14 * MS
    game.flip(3)
    assert [told for told in game.frames.told if told[0] == "frame_drawn"] == [
        ("frame_drawn", 2 * MS),
        ("frame_drawn", 19 * MS),
    ]


def test_three_waits_for_the_next_frame_and_none_shown_are_a_pause(game):
    game.flip()
    for _ in range(3):
        game.tick(16)
    assert game.frames.told[-2:] == [("idle",), ("frame_drawn", 48 * MS)]


def test_two_clocks_in_a_frame_are_no_pause(game):
    for _ in range(5):
        game.flip()
        game.tick(8)
        game.tick(8)
    assert ("idle",) not in game.frames.told


@pytest.mark.parametrize(
    ("screen", "target", "expected"),
    [
        (60.0, 30, 30.0),
        (60.0, 240, 60.0),
        (144.0, 60, 60.0),
        (None, 0, 60.0),
        (75.0, None, 75.0),
        (60.0, "x", 60.0),
    ],
)
def test_what_is_expected_is_the_lower_of_screen_and_aim(game, screen, target, expected):
    game.hertz = screen
    game.flip()
    game.tick(2_000, target)
    game.flip()
    assert game.frames.told[-1] == ("at_refresh_rate", expected)


def test_input_counts_from_the_last_look_to_the_frame_that_answers_it(game):
    game.flip()
    game.get()
    game.now += 300 * MS
    game.get(KEY, MOTION)
    game.now += 10 * MS
    game.flip(1)
    assert game.input.told == [("handled", "KeyDown", 0, 300 * MS, 311 * MS)]


def test_input_that_the_program_posts_has_arrived_then(game):
    game.flip()
    game.now += 100 * MS
    game.beat.posted(KEY)
    game.beat.posted(MOTION)
    game.now += 50 * MS
    game.get(KEY)
    game.now += 5 * MS
    game.get()
    assert game.input.told == [("handled", "KeyDown", 100 * MS, 150 * MS, 155 * MS)]


def test_an_event_that_was_waited_for_came_at_the_waits_end(game):
    game.flip()
    game.now += 20 * MS
    game.beat.await_event(game.spend(5_000, SimpleNamespace(type=KEY)), (), {})
    game.flip(1)
    assert ("waited", 20 * MS, 5_020 * MS) in game.frames.told
    assert game.input.told == [("handled", "KeyDown", 5_020 * MS, 5_020 * MS, 5_021 * MS)]


def test_when_the_screen_is_gone_the_work_is_over(game):
    game.flip()
    del game.hooks.calls[:]
    game.beat.over()
    game.get()
    assert game.hooks.calls == ["work_end", "run_end"]
    assert game.frames.told[-1] == ("close",)
    game.flip()
    assert game.hooks.calls[2:] == ["run_begin", *WAIT]


def test_trouble_of_ours_stays_with_us():
    game = Game(trouble=True)
    game.flip()
    game.flip()
    assert [str(error) for error in game.failures] == ["no frames today"]
    assert game.hooks.calls == ["run_begin", *WAIT, *WAIT]
