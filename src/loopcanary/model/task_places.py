"""What a task waits for, by the place in asyncio where it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loopcanary.late_dataclass import dataclass
from loopcanary.model.stack import Frame

HOLDERS: Final = "holders"
TASK: Final = "task"
_FD: Final = "_transport._sock_fd"
_PID: Final = "pid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is waited for in it, and what its first argument tells."""

    what: str
    argument: str | None = None
    """HOLDERS: it is held by other tasks; TASK: it may be the task; else the attribute of it that has a
    descriptor's or a process's number."""


_PLACES: Final = {
    ("locks", "Lock.acquire"): Place(what="an asyncio.Lock", argument=HOLDERS),
    ("locks", "Semaphore.acquire"): Place(what="an asyncio.Semaphore", argument=HOLDERS),
    ("locks", "Event.wait"): Place(what="an asyncio.Event"),
    ("locks", "Condition.wait"): Place(what="a notice of an asyncio.Condition"),
    ("locks", "Barrier.wait"): Place(what="the other tasks of an asyncio.Barrier"),
    ("queues", "Queue.get"): Place(what="an item of an asyncio.Queue"),
    ("queues", "Queue.put"): Place(what="room in an asyncio.Queue"),
    ("queues", "Queue.join"): Place(what="the end of the work in an asyncio.Queue"),
    ("tasks", "sleep"): Place(what="a timer (asyncio.sleep)"),
    ("tasks", "wait"): Place(what="tasks or futures (asyncio.wait)"),
    ("tasks", "wait_for"): Place(what="a task or future (asyncio.wait_for)", argument=TASK),
    ("tasks", "as_completed.<locals>._wait_for_one"): Place(what="the next of several tasks"),
    ("tasks", "_AsCompletedIterator._wait_for_one"): Place(what="the next of several tasks"),
    ("taskgroups", "TaskGroup.__aexit__"): Place(what="the tasks of an asyncio.TaskGroup"),
    ("threads", "to_thread"): Place(what="a thread (asyncio.to_thread)"),
    ("streams", "open_connection"): Place(what="a connection that is being made"),
    ("streams", "StreamReader._wait_for_data"): Place(what="data of a stream", argument=_FD),
    ("streams", "FlowControlMixin._drain_helper"): Place(what="room to write to a stream", argument=_FD),
    ("streams", "StreamWriter.wait_closed"): Place(what="the end of a stream", argument=_FD),
    ("subprocess", "Process.wait"): Place(what="a child process", argument=_PID),
    ("subprocess", "Process.communicate"): Place(what="a child process", argument=_PID),
    ("base_events", "BaseEventLoop.create_connection"): Place(what="a connection that is being made"),
    ("base_events", "BaseEventLoop.getaddrinfo"): Place(what="the address of a host name"),
    ("base_events", "Server.serve_forever"): Place(what="the end of a server"),
    ("base_events", "Server.wait_closed"): Place(what="the end of a server's connections"),
    ("selector_events", "BaseSelectorEventLoop.sock_accept"): Place(what="a client of a socket"),
    ("selector_events", "BaseSelectorEventLoop.sock_connect"): Place(what="the connection of a socket"),
    ("selector_events", "BaseSelectorEventLoop.sock_recv"): Place(what="data of a socket"),
    ("selector_events", "BaseSelectorEventLoop.sock_recv_into"): Place(what="data of a socket"),
    ("selector_events", "BaseSelectorEventLoop.sock_sendall"): Place(what="room to write to a socket"),
}
_AT_ONCE: Final = frozenset({"Lock.acquire", "Semaphore.acquire"})
"""Where they wait, nothing around it is what for: Condition.wait acquires its lock again."""
_WAIT_FOR: Final = ("tasks", "wait_for")
_TIMEOUTS: Final = frozenset({"Timeout.__aexit__", "CancelScope.__exit__"})


def place_of(frames: Sequence[Frame]) -> tuple[Place, int] | None:
    """The place in which a task with these frames (innermost first) waits, and which frame it is; None: it is
    not in asyncio's code, or not in such a place. What asyncio's code calls in asyncio is part of it."""
    found = None
    for number, frame in enumerate(frames):
        key = _key(frame)
        if key is None:
            break
        # From 3.12 on wait_for is around what is waited for; before, that is a task of its own.
        if key in _PLACES and (number == 0 or key != _WAIT_FOR):
            found = _PLACES[key], number
        if number == 0 and frame.qualname in _AT_ONCE:
            break
    return found


def has_timeout(frames: Sequence[Frame], exits: Sequence[str]) -> bool:
    """Whether it is in asyncio.wait_for, asyncio.timeout, async_timeout or a scope of anyio; its timeout
    may be None. `exits`: what open `with` and `async with` blocks will call."""
    return not _TIMEOUTS.isdisjoint(exits) or any(_key(frame) == _WAIT_FOR for frame in frames)


def _key(frame: Frame) -> tuple[str, str] | None:
    folder, _, name = frame.file.rpartition("/")
    return (name.removesuffix(".py"), frame.qualname) if f"/{folder}".endswith("/asyncio") else None
