"""The select of asyncio's usual selector, in C, answers what the standard library's does."""

from __future__ import annotations

import asyncio
import selectors
import signal
import socket
import sys
import time
from unittest import mock

import pytest

from loopcanary import _native

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not hasattr(selectors, "EpollSelector"), reason="there is no epoll here"),
]

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@pytest.fixture
def selector():
    with selectors.EpollSelector() as made:
        yield made


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def both(selector, timeout):
    """What the standard library's select answers, and ours."""
    plain = selectors.EpollSelector.select(selector, timeout)
    ours = _native.TurnSelect(selector, selector.select, lambda _turns: None, True)(timeout)
    assert type(ours) is list
    return plain, ours


@pytest.mark.parametrize("timeout", [None, 0, 0.0, 0.25, -1.0, 1], ids=repr)
@pytest.mark.parametrize("wanted", [READ, WRITE, READ | WRITE])
def test_it_answers_the_same_events(selector, pair, wanted, timeout):
    ours, theirs = pair
    theirs.send(b"x")
    selector.register(ours, wanted, "data")
    plain, answered = both(selector, timeout)
    assert plain == answered
    assert [(key.fileobj, events) for key, events in answered] == [(ours, wanted)]


def test_it_answers_the_same_of_a_peer_that_has_gone(selector, pair):
    ours, theirs = pair
    theirs.close()
    selector.register(ours, READ)
    plain, answered = both(selector, 0)
    assert plain == answered
    assert len(answered) == 1


@pytest.mark.parametrize("timeout", [0, 0.0, -0.5, 0.0004], ids=repr)
def test_it_answers_nothing_in_time(selector, pair, timeout):
    assert both(selector, timeout) == ([], [])
    selector.register(pair[0], READ)
    assert both(selector, timeout) == ([], [])


def test_it_waits_at_least_as_long_as_asked(selector):
    select = _native.TurnSelect(selector, selector.select, lambda _turns: None, True)
    begin = time.monotonic()
    assert select(0.0101) == []
    assert time.monotonic() - begin >= 0.0101


def test_a_descriptor_that_the_selector_forgot_is_left_out(selector, pair):
    ours, theirs = pair
    theirs.send(b"x")
    selector.register(ours, READ)
    kept = dict(selector._fd_to_key)
    selector._fd_to_key.clear()
    assert both(selector, 0) == ([], [])
    selector._fd_to_key.update(kept)


def test_a_closed_selector_raises_the_same(selector):
    select = _native.TurnSelect(selector, selector.select, lambda _turns: None, True)
    plain = selector.select
    selector.close()
    with pytest.raises(ValueError, match="closed") as expected:
        plain(0)
    with pytest.raises(ValueError, match="closed") as raised:
        select(0)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("timeout", [float("inf"), float("nan"), "soon"], ids=repr)
def test_it_raises_the_same_for_odd_timeouts(selector, timeout):
    select = _native.TurnSelect(selector, selector.select, lambda _turns: None, True)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - what it is, is the question
        selector.select(timeout)
    with pytest.raises(type(expected.value)) as raised:
        select(timeout)
    assert str(raised.value) == str(expected.value)


def test_a_signals_handler_runs_in_the_wait_and_may_raise(selector):
    select = _native.TurnSelect(selector, selector.select, lambda _turns: None, True)

    def fail(*_):
        raise LookupError("as it must")

    def wait_for_it():
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        select(None)

    before = signal.signal(signal.SIGALRM, fail)
    try:
        with pytest.raises(LookupError, match="as it must"):
            wait_for_it()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_loops_on_epoll_wait_without_the_librarys_code(watch):
    code = selectors.EpollSelector.select.__code__
    seen = []

    async def main():
        loop = asyncio.get_running_loop()
        with mock.patch.object(loop, "_process_events", seen.append):
            await asyncio.sleep(0)

    def trace(frame, event, argument):
        assert frame.f_code is not code

    with watch.installed():
        sys.setprofile(trace)
        try:
            asyncio.run(main())
        finally:
            sys.setprofile(None)
    assert [] in seen


def test_a_select_that_was_patched_is_called(watch, monkeypatch):
    original, calls = selectors.EpollSelector.select, []

    def counting(self, timeout=None):
        calls.append(timeout)
        return original(self, timeout)

    monkeypatch.setattr(selectors.EpollSelector, "select", counting)
    with watch.installed():
        asyncio.run(asyncio.sleep(0))
    assert calls
