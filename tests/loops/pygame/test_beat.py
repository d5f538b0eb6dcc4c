"""What becomes of a game's frames and input, told in times: the rates that are expected, when input arrived
and was dealt with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loopcanary.probes.pygame import Beat

MS = 1_000_000
KEY, MOTION = 768, 1024


class Frames:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.told.append((name, *args))


class Calls:
    """What is asked of the C part."""

    def __init__(self) -> None:
        self.shown: Any = None
        self.types: Any = ()
        self.watching = False

    def on_shown(self, function: Any) -> None:
        self.shown = function

    def on_input(self, types: Any) -> None:
        self.types = types

    def is_watching(self) -> bool:
        return self.watching

    def over(self) -> None:
        self.watching = False


class Game:
    """A beat and what it reports to."""

    def __init__(self, *, trouble: bool = False) -> None:
        self.now = 0
        self.calls, self.frames, self.input = Calls(), Frames(), Frames()
        self.failures: list[Exception] = []
        self.hertz: float | None = 60.0
        self.beat = Beat(
            self.calls,
            refresh_hz=lambda: self.hertz,
            input_types=lambda: {KEY},
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

    def begin(self) -> None:
        self.calls.watching = True
        self.beat.began()

    def looked(self, *kinds: int, before: int, since: int, now: int) -> bool:
        return self.beat.looked(
            [SimpleNamespace(type=kind) for kind in kinds], before * MS, since * MS, now * MS
        )


@pytest.fixture
def game() -> Any:
    made = Game()
    made.begin()
    yield made
    assert made.failures == []


def test_frames_and_input_are_traced_from_the_first_flip_on(game):
    assert game.calls.types == {KEY}
    game.calls.shown(7)
    assert game.frames.told == [("frame_drawn", 7)]


def test_the_next_frame_begins_at_the_end_of_a_pause(game):
    game.beat.paused(48 * MS)
    assert game.frames.told == [("idle",), ("frame_drawn", 48 * MS)]


def test_waits_and_dialogs_are_traced(game):
    game.beat.waited(3, 9)
    game.beat.modal_over()
    assert game.frames.told == [("waited", 3, 9), ("idle",)]


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
    game.beat.look_at_screen()
    game.beat.aims_at(target)
    assert game.frames.told[-1] == ("at_refresh_rate", expected)


def test_input_counts_from_the_last_look_to_its_frame(game):
    assert game.looked(KEY, MOTION, before=300, since=0, now=300)
    game.beat.handled(311 * MS)
    assert game.input.told == [("handled", "KeyDown", 0, 300 * MS, 311 * MS)]


def test_input_is_dealt_with_once(game):
    game.looked(KEY, before=300, since=0, now=300)
    game.beat.handled(311 * MS)
    game.beat.handled(320 * MS)
    assert len(game.input.told) == 1


def test_input_that_the_program_posts_has_arrived_then(game):
    game.now = 100 * MS
    game.beat.posted(KEY)
    game.beat.posted(MOTION)
    game.looked(KEY, before=150, since=0, now=150)
    game.beat.handled(155 * MS)
    assert game.input.told == [("handled", "KeyDown", 100 * MS, 150 * MS, 155 * MS)]


def test_what_was_posted_and_cleared_is_forgotten(game):
    game.beat.posted(KEY)
    game.beat.cleared()
    game.looked(KEY, before=150, since=120, now=150)
    game.beat.handled(155 * MS)
    assert game.input.told == [("handled", "KeyDown", 120 * MS, 150 * MS, 155 * MS)]


def test_an_event_that_was_waited_for_came_at_the_waits_end(game):
    assert game.beat.looked(SimpleNamespace(type=KEY), 20 * MS, 5_020 * MS, 5_020 * MS)
    game.beat.handled(5_021 * MS)
    assert game.input.told == [("handled", "KeyDown", 5_020 * MS, 5_020 * MS, 5_021 * MS)]


def test_what_is_no_input_is_not_pending(game):
    assert not game.looked(MOTION, before=3, since=1, now=3)


def test_when_the_screen_is_gone_all_is_over(game):
    game.looked(KEY, before=3, since=1, now=3)
    game.beat.over()
    game.beat.handled(9)
    game.beat.posted(KEY)
    assert not game.calls.watching
    assert game.frames.told == [("close",)]
    assert game.input.told == []
    game.begin()
    game.looked(KEY, before=30, since=20, now=30)
    game.beat.handled(40 * MS)
    assert game.input.told == [("handled", "KeyDown", 20 * MS, 30 * MS, 40 * MS)]


def test_trouble_of_ours_stays_with_us():
    game = Game(trouble=True)
    game.begin()
    game.beat.paused(1)
    game.beat.aims_at(30)
    assert [str(error) for error in game.failures] == ["no frames today"]
    assert game.calls.shown is None
