from __future__ import annotations

import threading

from loopcanary.model import DropLevel, ShownFrame
from loopcanary.registry import FrameListener
from loopcanary.tracers.frames import FrameListeners


def frame(number: int) -> ShownFrame:
    return ShownFrame(
        scene=None,
        thread=1,
        loop="pygame",
        start_ns=number,
        shown_ns=number + 1,
        refresh_hz=60.0,
        intervals=0,
        dropped=0,
        level=DropLevel.BEST,
    )


def test_a_listener_that_raises_is_switched_off_alone():
    failures: list[str] = []
    heard: list[int] = []

    def bad(_: ShownFrame) -> None:
        raise RuntimeError("not my day")

    registered = [FrameListener(bad), FrameListener(lambda one: heard.append(one.start_ns))]
    listeners = FrameListeners(registered, lambda part, error: failures.append(f"{part}: {error}"))
    for number in range(3):
        listeners.tell(frame(number))
    assert heard == [0, 1, 2]
    assert len(failures) == 1
    assert failures[0].endswith("bad: not my day")


def test_a_listeners_thread_keeps_order_and_ends():
    heard: list[int] = []
    threads: set[str] = set()
    done = threading.Event()

    def hear(one: ShownFrame) -> None:
        threads.add(threading.current_thread().name)
        heard.append(one.start_ns)
        if one.start_ns == 99:
            done.set()

    listeners = FrameListeners([FrameListener(hear, on_thread=True)], lambda *_: None)
    for number in range(100):
        listeners.tell(frame(number))
    assert done.wait(60)
    thread = next(one for one in threading.enumerate() if one.name == "loopcanary-frames")
    listeners.end()
    thread.join(60)
    assert not thread.is_alive()
    assert heard == list(range(100))
    assert threads == {"loopcanary-frames"}


def test_what_waits_for_a_slow_listener_is_bounded():
    go_on, begun = threading.Event(), threading.Event()
    heard: list[int] = []

    def slow(one: ShownFrame) -> None:
        begun.set()
        go_on.wait(60)
        heard.append(one.start_ns)

    listeners = FrameListeners([FrameListener(slow, on_thread=True)], lambda *_: None)
    listeners.tell(frame(0))
    assert begun.wait(60)
    for number in range(1, 5_001):
        listeners.tell(frame(number))
    thread = next(one for one in threading.enumerate() if one.name == "loopcanary-frames")
    go_on.set()
    listeners.end()
    thread.join(60)
    assert len(heard) == 1_025  # the one in hand, and as many as may wait: the newest
    assert heard[-1] == 5_000
