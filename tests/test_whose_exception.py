"""An exception that a handler of a signal raised is known from others."""

from __future__ import annotations

import functools
import signal

import pytest

from loopcanary.whose_exception import ours, stops_ours


class LateError(Exception):
    pass


def raises(*_):
    raise LateError


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


class Handler:
    def method(self, _number, _frame):
        raises()

    @classmethod
    def of_class(cls, _number, _frame):
        raises()

    def __call__(self, _number, _frame):
        raises()


HANDLERS = {
    "a function": raises,
    "a lambda": lambda *_: raises(),
    "a method": Handler().method,
    "a method of a class": Handler.of_class,
    "an object that can be called": Handler(),
    "a partial": functools.partial(raises, "first"),
    "a partial of a method": functools.partial(Handler().method),
    "a function that is wrapped": wrapped(wrapped(raises)),
}


@pytest.fixture
def handle():
    """Sets a handler of the signal until the test is over."""
    before = signal.getsignal(signal.SIGUSR1)
    yield functools.partial(signal.signal, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def stopped_by_clause():
    try:
        signal.raise_signal(signal.SIGUSR1)
    except ours():
        return


def stopped_by_block():
    with stops_ours:
        signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize("stopped", [stopped_by_clause, stopped_by_block])
@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_what_a_handler_raises_is_not_stopped(handle, handler, stopped):
    handle(handler)
    with pytest.raises(LateError):
        stopped()


@wrapped
def fails():
    raise LateError


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.default_int_handler, Handler(), wrapped(raises)])
def test_anything_else_is_stopped(handle, handler):
    handle(handler)
    with stops_ours:
        fails()
    with pytest.raises(SystemExit), stops_ours:
        raise SystemExit
