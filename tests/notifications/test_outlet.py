from __future__ import annotations

import threading
import time

from loopcanary.engine.threads import PythonThread
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import DeliveryError, Outlet

GIVES_UP_S = 280


class Receiver:
    """Takes what it is given, once it is let, as the script says."""

    name = "script"

    def __init__(self, *script: DeliveryError | None) -> None:
        self.may = threading.Event()
        self.has_one = threading.Event()
        self.taken: list[Notice] = []
        self.tries = 0
        self.is_closed = False
        self._script = list(script)

    def deliver(self, notice: Notice) -> None:
        self.has_one.set()
        assert self.may.wait(GIVES_UP_S)
        self.tries += 1
        if self._script and (error := self._script.pop(0)) is not None:
            raise error
        self.taken.append(notice)

    def cut(self) -> None:
        self.may.set()

    def close(self) -> None:
        self.is_closed = True


def sending(receiver: Receiver, *notices: Notice) -> Outlet:
    outlet = Outlet(receiver, PythonThread)
    for notice in notices:
        outlet.send(notice)
    outlet.look(time.monotonic_ns())
    return outlet


def notices(count: int) -> list[Notice]:
    return [Notice(title=str(number), stalls=2) for number in range(count)]


def test_who_sends_never_waits_and_what_does_not_fit_is_counted():
    receiver = Receiver()
    first, *rest = notices(41)
    outlet = sending(receiver, first)
    assert receiver.has_one.wait(GIVES_UP_S)  # and it stays there
    for notice in rest:
        outlet.send(notice)
    receiver.may.set()
    outlet.close(GIVES_UP_S)
    assert [notice.title for notice in receiver.taken] == ["0", *map(str, range(9, 41))]
    counts = outlet.counts
    assert (counts.sent, counts.lost, counts.lost_stalls) == (33, 8, 16)
    assert counts.problem is None  # what came last has arrived
    assert "8 notifications before this could not be delivered" in receiver.taken[1].more
    assert receiver.taken[2].more == ""
    assert receiver.is_closed


def test_the_next_notification_says_what_was_lost():
    receiver = Receiver(DeliveryError("no such hook", again=False))
    receiver.may.set()
    outlet = sending(receiver, *notices(2))
    outlet.close(GIVES_UP_S)
    (taken,) = receiver.taken
    assert taken.more == "1 notification before this could not be delivered"
    assert (outlet.counts.sent, outlet.counts.lost, outlet.counts.lost_stalls) == (1, 1, 2)


def test_what_may_be_taken_later_is_tried_three_times():
    receiver = Receiver(*[DeliveryError("busy", again=True, wait_s=0.0)] * 3)
    receiver.may.set()
    outlet = sending(receiver, *notices(1))
    while outlet.look(time.monotonic_ns()) is not None:
        outlet.rest(GIVES_UP_S)
    assert receiver.tries == 3
    assert outlet.counts.problem == "busy"
    assert outlet.counts.lost == 1


def test_the_end_does_not_wait_an_hour_for_a_receiver():
    receiver = Receiver(DeliveryError("slow down", again=True, wait_s=3_600.0))
    outlet = sending(receiver, *notices(1))
    assert receiver.has_one.wait(GIVES_UP_S)
    receiver.may.set()
    outlet.close(GIVES_UP_S)
    assert receiver.is_closed
    assert (outlet.counts.sent, outlet.counts.lost) == (0, 1)


def test_a_hanging_receiver_is_left_behind_at_the_end():
    receiver = Receiver()
    outlet = sending(receiver, *notices(3))
    assert receiver.has_one.wait(GIVES_UP_S)
    outlet.close(0.0)
    assert outlet.counts.lost == 2
    assert outlet.counts.problem == "the process ended before they were sent"
    receiver.may.set()
    assert outlet.rest(GIVES_UP_S)


def test_no_thread_is_there_while_nothing_is_delivered():
    receiver = Receiver(DeliveryError("busy", again=True, wait_s=60.0))
    receiver.may.set()
    outlet = sending(receiver, *notices(1))
    assert outlet.rest(GIVES_UP_S)
    now_ns = time.monotonic_ns()
    due_ns = outlet.look(now_ns)
    assert due_ns is not None
    assert 50_000_000_000 < due_ns - now_ns <= 60_000_000_000
    outlet.look(due_ns)
    assert outlet.rest(GIVES_UP_S)
    outlet.close(0.0)


def test_a_try_that_takes_too_long_is_cut():
    receiver = Receiver()
    outlet = sending(receiver, *notices(1))
    assert receiver.has_one.wait(GIVES_UP_S)
    now_ns = time.monotonic_ns()
    outlet.look(now_ns + 5_000_000_000)
    assert not receiver.may.is_set()
    outlet.look(now_ns + 11_000_000_000)
    assert receiver.may.is_set()
    outlet.close(GIVES_UP_S)
    assert outlet.counts.sent == 1


class NoThread(PythonThread):
    def start(self) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")


def test_what_is_left_is_delivered_where_there_are_no_threads_any_more():
    receiver = Receiver()
    receiver.may.set()
    outlet = Outlet(receiver, NoThread)
    for notice in notices(2):
        outlet.send(notice)
    outlet.look(time.monotonic_ns())
    assert receiver.taken == []
    outlet.close(GIVES_UP_S)
    assert [notice.title for notice in receiver.taken] == ["0", "1"]
    assert outlet.counts.lost == 0
