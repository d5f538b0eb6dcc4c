"""Stories of threads that acquire locks in some order. Run as a program, it prints what the engine finds in
each. No two threads run at the same time, where a story does not say so: none can hang."""

from __future__ import annotations

import _thread
import json
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import loopcanary
from loopcanary import _native

Lock = threading.Lock
STORIES: dict[str, Callable[[], object]] = {}
asked: list[str] = []
"""Names for which a story's own code was asked."""
ledger, accounts = threading.Lock(), threading.Lock()


def story(function: Callable[[], object]) -> Callable[[], object]:
    STORIES[function.__name__] = function
    return function


def in_thread(work: Callable[[], object], name: str | None = None) -> None:
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()


def take(*locks: Any) -> None:
    with ExitStack() as held:
        for lock in locks:
            held.enter_context(lock)


def each(*orders: tuple[Any, ...]) -> None:
    """Each order by a thread of its own, named first, second and so on."""
    for name, order in zip(("first", "second", "third", "fourth"), orders, strict=False):
        in_thread(partial(take, *order), name)


class Bank:
    def __init__(self) -> None:
        self.accounts = Lock()
        self.ledger = threading.RLock()

    def pay(self) -> None:
        with self.accounts:
            self.note()

    def note(self) -> None:
        with self.ledger:
            pass

    def audit(self) -> None:
        with self.ledger, self.accounts:
            pass


@story
def both_orders() -> None:
    bank = Bank()
    in_thread(bank.pay, "teller")
    in_thread(bank.audit, "auditor")
    in_thread(bank.audit, "auditor of the next day")


@story
def by_acquire_and_release() -> None:
    def pay() -> None:
        accounts.acquire()
        ledger.acquire(True, -1)
        accounts.release()
        ledger.release()

    def audit() -> None:
        ledger.acquire(blocking=True)
        accounts.acquire(timeout=-1)
        ledger.release()
        accounts.release()

    in_thread(pay, "teller")
    in_thread(audit, "auditor")


@story
def one_thread_only() -> None:
    one, other = Lock(), Lock()

    def both() -> None:
        take(one, other)
        take(other, one)

    in_thread(both)


@story
def a_further_lock_around_both() -> None:
    one, other, outer = Lock(), Lock(), Lock()
    each((outer, one, other), (outer, other, one))


@story
def three_in_a_ring() -> None:
    one, two, three = Lock(), Lock(), Lock()
    each((one, two), (two, three), (three, one))


@story
def a_try_never_waits() -> None:
    one, other = Lock(), threading.RLock()
    each((one, other))

    def tries() -> None:
        for words in ({"blocking": False}, {"timeout": 0.01}, {"blocking": True, "timeout": 1}):
            with other:
                assert one.acquire(**words)  # type: ignore[arg-type]
                one.release()
        with other:
            assert one.acquire(0)  # type: ignore[arg-type]
            one.release()

    in_thread(tries)


@story
def acquired_again() -> None:
    one, other = threading.RLock(), Lock()
    each((one, other, one), (one, one, other))


@story
def let_go_in_between() -> None:
    one, other = threading.RLock(), Lock()
    each((one, other))

    def separately() -> None:
        for _ in range(2):
            other.acquire()
            other.release()
            one.acquire()
            one.acquire()
            one.release()
            one.release()

    in_thread(separately)


@story
def messages_by_queues() -> None:
    """At the same time."""
    there, back = queue.Queue[int](2), queue.Queue[int](2)

    def answers() -> None:
        while (message := there.get()) >= 0:
            back.put(message)
            there.task_done()

    threads = [threading.Thread(target=answers) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(300):
        there.put(number)
        back.get()
    there.join()
    for _ in threads:
        there.put(-1)
    for thread in threads:
        thread.join()


@story
def after_news_of_a_condition() -> None:
    """A Condition has its lock back after the wait."""
    ready, other = threading.Condition(), Lock()

    def waits() -> None:
        with ready:
            ready.wait(0.001)
            with other:
                pass

    def tells() -> None:
        with other, ready:
            ready.notify()

    in_thread(waits, "waiter")
    in_thread(tells, "teller")


@story
def a_wait_in_another_lock() -> None:
    ready, other = threading.Condition(), Lock()

    def waits() -> None:
        ready.acquire()
        other.acquire()
        ready.wait(0.001)  # takes it back while it holds the other one
        ready.release()
        other.release()

    in_thread(waits, "waiter")
    each((ready, other))


@story
def a_condition_around_both() -> None:
    ready, one, other = threading.Condition(), Lock(), Lock()

    def waits() -> None:
        with ready:
            ready.wait(0.001)
            take(one, other)

    in_thread(waits)
    each((ready, other, one))


@story
def news_by_conditions() -> None:
    """At the same time. The lock around the wait is one that the other side needs for nothing."""
    outer, ready, news = Lock(), threading.Condition(), []

    def waits() -> None:
        with outer, ready:
            ready.wait_for(lambda: news)
            ready.wait(0.001)

    thread = threading.Thread(target=waits)
    thread.start()
    with ready:
        news.append(1)
        ready.notify_all()
    thread.join()


@story
def a_condition_and_a_lock() -> None:
    class Shop:
        ready = threading.Condition()
        stock = Lock()

    shop = Shop()

    def sells() -> None:
        with shop.ready, shop.stock:
            pass

    def fills() -> None:
        with shop.stock, shop.ready:
            shop.ready.notify_all()

    in_thread(sells, "seller")
    in_thread(fills, "supplier")


@story
def a_lock_that_another_thread_releases() -> None:
    """It is a signal: what is acquired before it has to be released by nobody."""
    signal, state = Lock(), Lock()
    for _ in range(3):
        signal.acquire()
        in_thread(signal.release)
        each((state, signal), (signal, state))


@story
def locks_that_come_and_go() -> None:
    """At the same addresses, in all orders."""
    for number in range(200):
        pair = [Lock(), Lock()]
        order = pair if number % 2 else pair[::-1]
        in_thread(partial(take, *order))
        del pair, order


@story
def a_lock_that_dies_while_it_is_held() -> None:
    def loses() -> None:
        Lock().acquire()
        threading.RLock().acquire()
        one, other = Lock(), Lock()
        take(one, other)

    in_thread(loses)


@story
def a_pool() -> None:
    class Account:
        def __init__(self) -> None:
            self.lock = Lock()

    def transfer(source: Account, target: Account) -> None:
        with source.lock, target.lock:
            pass

    one, other = Account(), Account()
    with ThreadPoolExecutor(1, "first") as first, ThreadPoolExecutor(1, "second") as second:
        first.submit(transfer, one, other).result()
        first.submit(transfer, other, one).result()  # the same thread: none yet
        second.submit(transfer, other, one).result()


@story
def both_orders_by_the_second_thread() -> None:
    one, other = Lock(), Lock()

    def both() -> None:
        take(one, other)
        take(other, one)

    in_thread(partial(take, one, other), "first")
    in_thread(both, "second")


@story
def names_that_many_have() -> None:
    class Account:
        def __init__(self) -> None:
            self._lock = Lock()

        def move(self, other: Account) -> None:
            with self._lock, other._lock:
                pass

    one, other = Account(), Account()
    in_thread(partial(one.move, other), "t" * 300)
    in_thread(partial(other.move, one), "é" * 80)


@story
def more_than_are_noted_of_a_thread() -> None:
    locks = [Lock() for _ in range(20)]
    each(tuple(locks), tuple(locks[:2]))


@story
def a_class_of_the_programs() -> None:
    class Mine(type(threading.RLock())):  # type: ignore[misc]
        pass

    one, other = Mine(), Lock()
    each((one, other), (other, one))


@story
def nothing_of_the_program_is_called() -> None:
    class Guarded:
        def __init__(self) -> None:
            self.__dict__["one"], self.__dict__["other"] = Lock(), Lock()

        def __getattribute__(self, name: str) -> Any:
            asked.append(name)
            return object.__getattribute__(self, name)

        def __eq__(self, other: object) -> bool:
            asked.append("__eq__")
            return self is other

        __hash__ = None  # type: ignore[assignment]

    class Plain:
        @property
        def one(self) -> None:
            asked.append("property")

    def works(guarded: Guarded, plain: Plain) -> None:
        one, other = guarded.one, guarded.other
        del asked[:]
        with one, other:
            pass
        assert asked == [], asked
        assert plain.one is None

    in_thread(lambda: works(Guarded(), Plain()))


def main() -> None:
    loopcanary.install(store=sys.argv[1], console=False, keeper=False)
    before = Lock()
    before.acquire()
    waits = threading.Condition.wait.__code__
    files = tuple(code.co_filename for code in (waits, queue.Queue.get.__code__, ExitStack.close.__code__))
    _native.orders_start(_thread.LockType, _thread.RLock, waits, files, threading._active)
    before.release()
    found: dict[str, Any] = {}
    for name, tell in STORIES.items():
        tell()
        found[name] = list(iter(_native.orders_take, None))
    found["lost"] = _native.orders_lost()
    _native.orders_stop()
    both_orders()
    found["after"] = _native.orders_take()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
