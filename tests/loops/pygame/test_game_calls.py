"""GameCalls: what is a wait and what is work; what is told, and when. A stand-in is called, asked, copied and
pickled as the function it replaces.
"""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import time
import weakref
from threading import Thread, get_ident
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import loopcanary
from loopcanary.probes.pygame import GameCalls, _is_alive

native = pytest.importorskip("loopcanary._native", reason="needs the C core")

KEY, MOTION = 768, 1024
ROLES = ("flip", "look", "await", "wait", "modal")


class Told:
    """A beat that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.input_is_pending = False
        self.fails_with: type[BaseException] | None = None

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any) -> bool:
            self.calls.append((name, *args))
            if self.fails_with is not None:
                raise self.fails_with
            return self.input_is_pending

        return note

    def names(self) -> list[str]:
        """Taken: what was told since."""
        calls, self.calls = self.calls, []
        return [call[0] for call in calls]


class Game:
    """Stand-ins for functions of a library that give back what they are given."""

    def __init__(self) -> None:
        self.beat = Told()
        self.calls = GameCalls(native.LoopHooks("pygame"), "frame")
        self.calls.tell(self.beat)
        self.flip = self.stand_in("flip")
        self.look = self.stand_in("look")
        self.await_event = self.stand_in("await")

    def stand_in(self, role: str) -> Any:
        return self.calls.stand_in(lambda result=None, **names: names or result, role)

    def begin(self) -> None:
        """The first frame; its second is not over for a while."""
        self.flip()
        self.calls.on_shown(self.beat.shown)
        self.flip()
        self.beat.names()


@pytest.fixture
def canary(tmp_path):
    started = loopcanary.install(threshold="1h", store=str(tmp_path / "store"), console=False)
    yield started
    loopcanary.uninstall()


@pytest.fixture
def game():
    made = Game()
    yield made
    made.calls.over()


def lane(canary):
    return next(loop for loop in canary.loops() if loop.kind == "pygame")


def event(kind: int) -> Any:
    return SimpleNamespace(type=kind)


# ---- work and waits -------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_work_is_between_two_calls_which_are_waits(canary, game, role):
    call = game.stand_in(role)
    game.flip()
    before = lane(canary)
    for _ in range(3):
        call()
    after = lane(canary)
    assert (after.turns - before.turns, after.callbacks - before.callbacks) == (3, 3)


@pytest.mark.parametrize("role", ROLES)
def test_an_error_goes_through_and_the_wait_is_over(canary, game, role):
    def fail() -> None:
        raise OSError("no screen")

    call = game.calls.stand_in(fail, role)
    game.flip()
    before = lane(canary)
    for _ in range(2):
        with pytest.raises(OSError, match="no screen") as caught:
            call()
        assert caught.value.__context__ is None
    after = lane(canary)
    assert (after.turns - before.turns, after.callbacks - before.callbacks) == (2, 2)


@pytest.mark.usefixtures("canary")
def test_nothing_is_watched_before_the_first_flip(game):
    for role in ("look", "await", "wait", "modal"):
        assert game.stand_in(role)("through") == "through"
    assert not game.calls.is_watching()
    assert game.beat.names() == []
    game.flip()
    assert game.calls.is_watching()
    assert game.beat.names() == ["began"]


def test_other_threads_go_through_untouched(canary, game):
    game.begin()
    before = lane(canary).callbacks
    answers: list[Any] = []
    thread = Thread(target=lambda: answers.extend(game.stand_in(role)("through") for role in ROLES))
    thread.start()
    thread.join()
    assert answers == ["through"] * len(ROLES)
    assert game.beat.names() == []
    assert lane(canary).callbacks == before


def test_when_it_is_over_the_work_is(canary, game):
    game.flip()
    game.calls.over()
    before = lane(canary)
    game.look()
    assert not game.calls.is_watching()
    assert (before.callbacks, lane(canary).callbacks) == (1, 1)


def test_over_by_another_thread_ends_the_work_at_the_next_call(canary, game):
    game.flip()
    end = Thread(target=game.calls.over)
    end.start()
    end.join()
    counts = [lane(canary).callbacks]
    for _ in range(2):
        game.look()
        counts.append(lane(canary).callbacks)
    assert counts == [0, 1, 1]


def test_over_by_another_thread_during_a_wait_leaves_no_work(canary, game):
    def wait() -> None:
        end = Thread(target=game.calls.over)
        end.start()
        end.join()

    game.flip()
    game.calls.stand_in(wait, "wait")()
    counts = [lane(canary).callbacks]
    game.flip()
    game.look()
    counts.append(lane(canary).callbacks)
    assert counts == [1, 2]


def test_a_thread_that_ends_without_a_word_leaves_its_place(canary, game):
    ended = Thread(target=game.begin)
    ended.start()
    ended.join()
    assert not game.calls.is_watching()
    game.flip()
    assert game.calls.is_watching()
    assert game.beat.names() == ["began"]


def test_a_thread_that_begins_anew_keeps_its_place_until_its_end(canary, game):
    def play() -> None:
        game.flip()
        game.calls.over()
        game.flip()
        watching.append(game.calls.is_watching())

    watching: list[bool] = []
    thread = Thread(target=play)
    thread.start()
    thread.join()
    assert [*watching, game.calls.is_watching()] == [True, False]


def test_an_exception_of_the_games_clock_goes_through(game):
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        game.calls.stand_in(lambda _: None, "tick")(Odd())


# ---- frames ---------------------------------------------------------------------------------------


def test_a_frame_is_traced_when_it_is_shown(game):
    shown: list[int] = []
    game.flip()
    game.calls.on_shown(shown.append)
    begin_ns = time.monotonic_ns()
    game.flip()
    middle_ns = time.monotonic_ns()
    game.flip()
    assert begin_ns <= shown[0] <= middle_ns <= shown[1] <= time.monotonic_ns()


def test_the_screen_is_asked_at_the_first_frame(game):
    game.flip()
    game.calls.on_shown(game.beat.shown)
    game.beat.names()
    game.flip()
    assert game.beat.names() == ["shown", "look_at_screen"]


class Clock:
    """As of a library's."""

    ticks = 0

    def tick(self, framerate: float = 0) -> int:
        """Waits for the next frame."""
        if framerate == "x":
            raise TypeError("a number, please")
        self.ticks += 1
        return self.ticks


@pytest.fixture
def clock(game):
    class Standing:
        __slots__ = ("_real",)
        tick = game.calls.stand_in(Clock.tick, "tick")

        def __init__(self) -> None:
            self._real = Clock()

    return Standing()


def test_three_ticks_and_no_frame_are_a_pause(game, clock):
    game.begin()
    assert [clock.tick() for _ in range(4)] == [1, 2, 3, 4]
    assert game.beat.names() == ["paused", "paused"]
    for _ in range(5):
        game.flip()
        clock.tick()
        clock.tick()
    assert "paused" not in game.beat.names()


def test_a_tick_that_fails_is_a_tick(game, clock):
    game.begin()
    for _ in range(3):
        with pytest.raises(TypeError, match="a number, please"):
            clock.tick("x")
    assert game.beat.names() == ["aims_at", "paused"]


def test_the_rate_is_traced_where_it_changes(game, clock):
    game.begin()
    for rate in (0, 60, 60.0, 1_000, 10**3, None, 30):
        clock.tick(rate)
        game.flip()
    clock.tick(framerate=30)
    clock.tick(framerate=50)
    clock.tick()
    assert [call[1] for call in game.beat.calls if call[0] == "aims_at"] == [60, 1_000, None, 30, 50, 0]


def test_a_tick_is_called_in_all_the_ways_of_a_method(game, clock):
    game.begin()
    tick = clock.tick
    assert [tick(), tick(60), type(clock).tick(clock, framerate=60)] == [1, 2, 3]
    assert type(clock).tick(Clock()) == 1
    for wrong in ((), (clock, 1, 2), (clock, *range(20)), (3,)):
        with pytest.raises((TypeError, AttributeError)):
            type(clock).tick(*wrong)
    assert type(clock).tick.__doc__ == "Waits for the next frame."


# ---- input ----------------------------------------------------------------------------------------


def test_only_input_is_traced(game):
    game.begin()
    game.calls.on_input((KEY, KEY + 1))
    for found in (None, [], [event(MOTION)], [object()], [event("x")], [event(1 << 80)], event(MOTION), 3):
        assert game.look(found) is found
        game.await_event(found)
    assert set(game.beat.names()) == {"waited"}
    found = [event(MOTION), event(KEY)]
    assert game.look(found) is found
    assert game.beat.calls[-1][:2] == ("looked", found)


def test_input_came_since_the_last_look(game):
    game.begin()
    game.calls.on_input([KEY])
    times = [time.monotonic_ns()]
    game.look([])
    times.append(time.monotonic_ns())
    game.look([event(KEY)])
    times.append(time.monotonic_ns())
    ((_, _, before_ns, since_ns, now_ns),) = game.beat.calls
    assert times[0] <= since_ns <= times[1] <= before_ns <= now_ns <= times[2]


def test_an_event_that_was_waited_for_came_at_the_waits_end(game):
    def sleeps() -> Any:
        time.sleep(0.01)
        return event(KEY)

    game.begin()
    game.calls.on_input([KEY])
    game.calls.stand_in(sleeps, "await")()
    (waited, (_, _, before_ns, since_ns, _)) = game.beat.calls
    assert waited == ("waited", before_ns, since_ns)
    assert since_ns - before_ns >= 10_000_000


@pytest.mark.parametrize("answer", ["flip", "look", "await_event"])
def test_pending_input_is_dealt_with_at_the_next_frame_or_look(game, answer):
    game.begin()
    game.calls.on_input([KEY])
    game.beat.input_is_pending = True
    game.look([event(KEY)])
    game.beat.input_is_pending = False
    game.beat.names()
    getattr(game, answer)()
    getattr(game, answer)()
    assert game.beat.names().count("handled") == 1


def test_a_dialog_is_traced_at_its_end_whatever_it_raised(game):
    game.begin()
    game.stand_in("modal")()
    with pytest.raises(ZeroDivisionError):
        game.calls.stand_in(lambda: 1 // 0, "modal")()
    assert game.beat.names() == ["modal_over"] * 2


# ---- whatever ours raises -------------------------------------------------------------------------


def test_what_ours_raises_is_hidden(game, clock):
    game.beat.fails_with = ValueError
    game.begin()
    game.calls.on_input([KEY])
    found = [event(KEY)]
    assert game.look(found) is found
    assert game.await_event(found) is found
    assert [clock.tick(30) for _ in range(3)] == [1, 2, 3]
    assert game.stand_in("modal")("done") == "done"
    assert game.flip("shown") == "shown"
    assert {"looked", "waited", "aims_at", "paused", "modal_over"} <= set(game.beat.names())


def test_what_is_not_ours_to_stop_goes_through(game, clock):
    """A signal's handler may run while ours does."""
    game.begin()
    game.calls.on_input([KEY])
    game.beat.fails_with = KeyboardInterrupt
    for call in (
        game.flip,
        lambda: game.look([event(KEY)]),
        game.await_event,
        lambda: clock.tick(30),
        game.stand_in("modal"),
        game.calls.stand_in(lambda: 1 // 0, "modal"),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()


def test_no_listener_is_needed(game, clock):
    game.calls.tell(None)
    game.begin()
    game.calls.on_input([KEY])
    assert game.flip() is None
    assert game.look("through") == "through"
    assert game.await_event([event(KEY)])
    assert clock.tick(30) == 1


def test_nothing_is_leaked(game, clock):
    """Of any object that passes through: as many references after a thousand calls as before."""
    game.begin()
    game.calls.on_input([KEY])
    one, found = event(KEY), [event(KEY)]
    rate = 12_345.5

    def counts() -> list[int]:
        return [sys.getrefcount(held) for held in (one, found, rate, game.beat, game.calls, clock)]

    def rounds(times: int) -> None:
        for _ in range(times):
            game.flip(one)
            game.look(found)
            game.await_event(one)
            clock.tick(rate)
            clock.tick(framerate=1)
            game.stand_in("modal")(found)
            game.beat.names()

    rounds(2)
    before = counts()
    rounds(1_000)
    assert counts() == before


# ---- what a stand-in looks like -------------------------------------------------------------------


def shows(surface: object = None, *, vsync: bool = False) -> object:
    """Shows a frame."""
    return surface, vsync


@pytest.fixture
def patched(game, monkeypatch):
    """The stand-in of `shows`, in a module of its own."""
    library = ModuleType("a_library")
    monkeypatch.setattr(shows, "__module__", library.__name__)
    monkeypatch.setitem(sys.modules, library.__name__, library)
    library.shows = game.calls.stand_in(shows, "flip")
    return library.shows


def test_it_is_asked_as_the_function_is(patched):
    assert (patched.__name__, patched.__doc__, patched.__wrapped__) == ("shows", "Shows a frame.", shows)
    assert inspect.signature(patched) == inspect.signature(shows)
    assert callable(patched)
    with pytest.raises(AttributeError):
        patched.no_such_name  # noqa: B018


def test_it_takes_what_the_function_takes(patched):
    assert patched() == (None, False)
    assert patched(1) == (1, False)
    assert patched(*[1], vsync=True) == (1, True)
    assert patched(surface=2, vsync=True) == (2, True)
    with pytest.raises(TypeError, match="unexpected keyword"):
        patched(wrong=1)


def test_as_an_attribute_of_a_class_it_is_not_bound(patched):
    class Game:
        show = patched

    assert Game().show() == (None, False)
    assert Game.show(1) == (1, False)


def test_it_is_copied_and_pickled_by_its_name():
    """As builtin functions are."""
    calls = GameCalls(native.LoopHooks("pygame"), "frame")
    with pytest.MonkeyPatch.context() as patch:
        patched = calls.stand_in(time.sleep, "wait")
        patch.setattr(time, "sleep", patched)
        assert copy.copy(patched) is patched
        assert copy.deepcopy({"sleep": patched})["sleep"] is patched
        assert pickle.loads(pickle.dumps(patched)) is patched


def test_asking_for_a_thread_keeps_no_variable_alive():
    class Variable:
        """Of the caller."""

    def ask():
        variable = Variable()
        kept.append(weakref.ref(variable))
        return _is_alive(get_ident())

    kept = []
    gc.disable()
    try:
        assert ask()
        assert kept[0]() is None
    finally:
        gc.enable()
