from __future__ import annotations

import asyncio

import pytest

from loopcanary.portable.loops import SelectBracket, Ticker, selector_of

MS = 1_000_000


class Selector:
    """Its wait takes as long as the test says."""

    def __init__(self, clock):
        self.clock = clock
        self.waits_ms = 0

    def select(self, timeout=None):
        self.clock.pass_ms(self.waits_ms)
        return ["events", timeout]


class Timer:
    def __init__(self, delay_s, callback):
        self.delay_s, self.callback, self.cancelled = delay_s, callback, False

    def cancel(self):
        self.cancelled = True


class Loop:
    """Keeps its timers and calls of other threads, for the test to run."""

    def __init__(self):
        self.timers, self.calls, self.closed = [], [], False

    def call_later(self, delay_s, callback):
        self.timers.append(Timer(delay_s, callback))
        return self.timers[-1]

    def call_soon_threadsafe(self, callback):
        self.calls.append(callback)

    def is_closed(self):
        return self.closed


@pytest.fixture
def selector(clock):
    return Selector(clock)


@pytest.fixture
def bracket(lane, selector, clock):
    return SelectBracket(lane, selector, clock, lambda: None)


def turn(selector, clock, *, works_ms, waits_ms=1, timeout=None):
    clock.pass_ms(works_ms)
    selector.waits_ms = waits_ms
    return selector.select(timeout)


def durations_ms(lane):
    return [(ended.end_ns - ended.begin_ns) / MS for ended in lane.ended]


def test_a_turn_is_what_lies_between_two_waits(bracket, selector, lane, clock):
    bracket.attach(on_own_thread=True)
    assert turn(selector, clock, works_ms=3, waits_ms=500, timeout=7) == ["events", 7]
    turn(selector, clock, works_ms=250, waits_ms=500)
    turn(selector, clock, works_ms=4)
    assert durations_ms(lane) == [250]
    assert lane.totals(clock()).turns == 3
    assert lane.totals(clock()).busy_ns == 257 * MS


def test_a_loop_that_runs_already_is_timed_from_its_next_wait_on(bracket, selector, lane, clock):
    bracket.attach(on_own_thread=False)
    turn(selector, clock, works_ms=900)
    assert (durations_ms(lane), lane.turns) == ([], 0)
    turn(selector, clock, works_ms=200)
    assert durations_ms(lane) == [200]


@pytest.mark.parametrize(
    ("timeout", "waits_ms", "stalls_ms"),
    [
        pytest.param(None, 900, [], id="it may wait as long as it likes"),
        pytest.param(1.0, 1_050, [], id="a little late is in time"),
        pytest.param(1.0, 1_300, [310], id="much later than asked for is a stall since then"),
        pytest.param(0, 400, [410], id="it was not to wait at all"),
        pytest.param(-1, 400, [410], id="nor here"),
    ],
)
def test_a_wait_that_was_over_and_did_not_return(lane, clock, timeout, waits_ms, stalls_ms):
    selector = Selector(clock)
    SelectBracket(lane, selector, clock, lambda: None).attach(on_own_thread=False)
    turn(selector, clock, works_ms=0, waits_ms=waits_ms, timeout=timeout)
    turn(selector, clock, works_ms=10)
    assert durations_ms(lane) == stalls_ms


def test_a_wait_that_raises_leaves_the_lane_at_rest(bracket, selector, lane, clock):
    def interrupted(_timeout=None):
        raise KeyboardInterrupt

    selector.select = interrupted
    bracket = SelectBracket(lane, selector, clock, lambda: None)
    bracket.attach(on_own_thread=True)
    with pytest.raises(KeyboardInterrupt):
        selector.select()
    assert lane.look() is None


def test_a_fault_of_ours_does_not_reach_the_loop(bracket, selector, lane, clock, monkeypatch):
    bracket.attach(on_own_thread=True)
    monkeypatch.setattr(type(lane), "begin", lambda *_: 1 / 0)
    monkeypatch.setattr(type(lane), "end", lambda *_: 1 / 0)
    assert turn(selector, clock, works_ms=1) == ["events", None]
    assert lane.faults == 2


def test_the_wait_is_given_back(bracket, selector):
    bracket.attach(on_own_thread=False)
    assert "select" in vars(selector)
    bracket.detach()
    assert "select" not in vars(selector)
    bracket.detach()


def test_what_others_had_put_there_is_given_back_to_them(lane, selector, clock):
    theirs = selector.select = lambda _timeout=None: "theirs"
    bracket = SelectBracket(lane, selector, clock, lambda: None)
    bracket.attach(on_own_thread=False)
    assert selector.select() == "theirs"
    bracket.detach()
    assert selector.select is theirs


def test_what_others_have_put_over_it_stays(bracket, selector):
    bracket.attach(on_own_thread=False)
    ours = selector.select
    theirs = selector.select = lambda timeout=None: ours(timeout)
    bracket.detach()
    assert selector.select is theirs


def test_only_waits_of_asyncios_own_turns_are_bracketed():
    loop = asyncio.new_event_loop()

    class Foreign(type(loop)):
        def _run_once(self):
            """Waits otherwise."""

    foreign = Foreign()

    class Slotted:
        __slots__ = ("_selector",)

    try:
        assert selector_of(loop) is loop._selector
        assert selector_of(foreign) is None
        assert selector_of(Slotted()) is None
        assert selector_of(Loop()) is None
    finally:
        loop.close()
        foreign.close()


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def ticker(ticked_lane, loop, clock):
    return Ticker(ticked_lane, loop, clock, lambda: None, period_ns=20 * MS)


def test_a_ticker_says_how_late_it_ran(ticker, ticked_lane, loop, clock):
    ticker.attach(on_own_thread=True)
    assert [timer.delay_s for timer in loop.timers] == [0.02]
    clock.pass_ms(20 + 237)
    loop.timers[0].callback()
    assert durations_ms(ticked_lane) == [237]


def test_a_ticker_that_is_on_time_saw_nothing(ticker, ticked_lane, loop, clock):
    ticker.attach(on_own_thread=True)
    for index in range(5):
        clock.pass_ms(21)
        loop.timers[index].callback()
    assert ticked_lane.totals(clock()).busy_ns == 0
    assert len(loop.timers) == 6


def test_an_idle_loop_has_one_timer_at_a_time(ticker, loop, clock):
    ticker.attach(on_own_thread=True)
    clock.pass_ms(20)
    loop.timers[0].callback()
    assert len(loop.timers) == 2


def test_another_threads_loop_sets_its_own_first_timer(ticker, loop):
    ticker.attach(on_own_thread=False)
    assert loop.timers == []
    (call,) = loop.calls
    call()
    assert len(loop.timers) == 1


def test_a_ticker_ends_with_its_loop(ticker, loop, clock):
    ticker.attach(on_own_thread=True)
    ticker.detach()
    assert loop.timers[0].cancelled
    clock.pass_ms(20)
    loop.timers[0].callback()
    assert len(loop.timers) == 1
