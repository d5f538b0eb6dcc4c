"""Orders of locks as the engine finds them, and as people read them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopcanary.tracers.orders.tracer import lock_names

GIVES_UP_S = 280
STORIES = Path(__file__).with_name("order_stories.py")
BOTH = {
    "both_orders": [
        ("auditor", "RLock 'Bank.ledger'", "Lock 'Bank.accounts'"),
        ("teller", "Lock 'Bank.accounts'", "RLock 'Bank.ledger'"),
    ],
    "by_acquire_and_release": [
        ("auditor", "Lock 'ledger'", "Lock 'accounts'"),
        ("teller", "Lock 'accounts'", "Lock 'ledger'"),
    ],
    "three_in_a_ring": [(name, "Lock", "Lock 'lock'") for name in ("third", "first", "second")],
    "a_condition_and_a_lock": [
        ("supplier", "Lock 'Shop.stock'", "Condition 'Shop.ready'"),
        ("seller", "Condition 'Shop.ready'", "Lock 'Shop.stock'"),
    ],
    "a_pool": [
        ("second_0", "Lock 'Account.lock'", "Lock 'Account.lock'"),
        ("first_0", "Lock 'Account.lock'", "Lock 'Account.lock'"),
    ],
    "after_news_of_a_condition": [
        ("teller", "Lock 'other'", "Condition 'ready'"),
        ("waiter", "Condition 'ready'", "Lock 'other'"),
    ],
    "a_wait_in_another_lock": [
        ("first", "RLock", "Lock 'lock'"),
        ("waiter", "Lock 'other'", "Condition 'ready'"),
    ],
    "both_orders_by_the_second_thread": [
        ("second", "Lock 'other'", "Lock 'lock'"),
        ("first", "Lock", "Lock 'lock'"),
    ],
    "names_that_many_have": [
        (59 * "é", "Lock 'Account._lock'", "Lock 'Account._lock'"),
        (119 * "t", "Lock 'Account._lock'", "Lock 'Account._lock'"),
    ],
    "a_class_of_the_programs": [("second", "Lock", "Mine 'lock'"), ("first", "Mine", "Lock 'lock'")],
}
"""By story: thread, what it held, what it acquired then."""
NONE = (
    "one_thread_only",
    "a_further_lock_around_both",
    "a_try_never_waits",
    "acquired_again",
    "let_go_in_between",
    "messages_by_queues",
    "a_condition_around_both",
    "news_by_conditions",
    "a_lock_that_another_thread_releases",
    "locks_that_come_and_go",
    "a_lock_that_dies_while_it_is_held",
    "more_than_are_noted_of_a_thread",
    "nothing_of_the_program_is_called",
)
LOAD = """
import gc, os, signal, sys, threading, time, weakref
import loopcanary

loopcanary.install(quiet=True, lock_order=True, store="store", threshold="10s")
locks = [threading.Lock() if number % 2 else threading.RLock() for number in range(8)]
ready = threading.Condition()
end = time.monotonic() + float(sys.argv[1])
done = [0] * 8

class Dying:
    def __init__(self):
        self.lock = threading.Lock()
        self.lock.acquire()
        weakref.finalize(self, lambda lock: lock.locked(), self.lock)

    def __del__(self):
        with ready:
            pass

def work(mine):
    while time.monotonic() < end:
        first, second = sorted(((mine + done[mine]) % 8, (mine * 3) % 8))
        with locks[first]:
            if second != first:
                with locks[second]:
                    Dying()
        with ready:
            ready.notify_all()
            ready.wait(0.001)
        done[mine] += 1

signal.signal(signal.SIGALRM, lambda *_: locks[1].acquire(timeout=0.001) and locks[1].release())
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.005)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
while time.monotonic() < end:
    loopcanary.stop_tracers("orders")
    child = os.fork()
    if child == 0:
        with threading.Lock(), threading.RLock():
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    loopcanary.start_tracers("orders")
    time.sleep(0.02)  # the threads work traced
signal.setitimer(signal.ITIMER_REAL, 0)
for thread in threads:
    thread.join()
assert all(done), done
print("fine")
"""
BANK = """
import threading

class Bank:
    def __init__(self):
        self.accounts, self.ledger = threading.Lock(), threading.Lock()

    def pay(self):
        with self.accounts:
            with self.ledger:
                pass

    def audit(self):
        with self.ledger:
            with self.accounts:
                pass

bank = Bank()
for work in bank.pay, bank.audit:
    thread = threading.Thread(target=work, name=work.__name__)
    thread.start()
    thread.join()
"""


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
        timeout=GIVES_UP_S,
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("orders")
    told = json.loads(ran(folder, str(STORIES), "store").stdout)
    assert isinstance(told, dict)
    return told


@pytest.mark.native
@pytest.mark.parametrize("story", BOTH)
def test_found(found, story):
    (circle,) = found[story]
    assert [tuple(order[:3]) for order in circle] == BOTH[story]


@pytest.mark.native
@pytest.mark.parametrize("story", NONE)
def test_none(found, story):
    assert found[story] == []


@pytest.mark.native
def test_where(found):
    (((_, _, _, held_at, frames), _),) = found["both_orders"]
    assert (held_at[1], frames[0][1], frames[1][1]) == ("Bank.audit", "Bank.audit", "Thread.run")
    assert held_at[0] == frames[0][0] == str(STORIES)
    assert "with self.ledger, self.accounts" in STORIES.read_text().splitlines()[frames[0][3] - 1]


@pytest.mark.native
def test_a_condition_is_acquired_where_the_program_does(found):
    (((_, _, _, _, taken), (_, _, _, held_at, _)),) = found["a_condition_and_a_lock"]
    assert [frame[2] for frame in taken[:2]] == ["__enter__", "fills"]
    assert held_at[2] == "sells"


@pytest.mark.native
def test_room_and_end(found):
    assert found["lost"] == [0, 0]
    assert found["after"] is None


@pytest.mark.native
def test_a_program(tmp_path):
    (tmp_path / "bank.py").write_text(BANK)
    said = ran(tmp_path, "-m", "loopcanary", "run", "--lock-order", "bank.py").stderr
    assert "2 locks are acquired in both orders: Lock 'Bank.ledger', Lock 'Bank.accounts'" in said
    issues = json.loads(ran(tmp_path, "-m", "loopcanary", "report", "--format", "json").stdout)["issues"]
    (issue,) = (one for one in issues if one["kind"] == "lock-order")
    assert issue["thread"] == "audit"
    assert [order["frames"][0]["line"] for order in issue["orders"]] == [15, 10]
    assert issue["culprit"]["function"] == "audit"
    shown = ran(tmp_path, "-m", "loopcanary", "show", issue["id"]).stdout
    assert "while it held Lock 'Bank.ledger' (acquired at bank.py:14)" in " ".join(shown.split())


def test_without_the_native_engine_it_is_said(tmp_path):
    (tmp_path / "bank.py").write_text(BANK)
    words = "-m", "loopcanary", "run", "--lock-order", "--engine", "portable", "bank.py"
    assert "lock_order needs the native engine" in ran(tmp_path, *words).stderr


@pytest.mark.native
def test_a_forked_child_has_orders_of_its_own(tmp_path):
    """Once its own engine runs: from its first loop on."""
    (tmp_path / "bank.py").write_text(
        "import asyncio, os\n"
        "pid = os.fork()\n"
        "asyncio.run(asyncio.sleep(0))\n"
        f"{BANK}\n"
        "if pid: os.waitpid(pid, 0)\n"
    )
    ran(tmp_path, "-m", "loopcanary", "run", "--lock-order", "bank.py")
    issues = json.loads(ran(tmp_path, "-m", "loopcanary", "report", "--format", "json").stdout)["issues"]
    assert len({one["pid"] for one in issues if one["kind"] == "lock-order"}) == 2


@pytest.mark.native
def test_stopped_and_started(tmp_path):
    (tmp_path / "bank.py").write_text(
        "import loopcanary\n"
        "loopcanary.install(quiet=True, lock_order=True, store='store')\n"
        "loopcanary.stop_tracers('orders')\n"
        f"{BANK}\n"
        "loopcanary.start_tracers('orders')\n"
        "for _ in range(2):\n"  # the same places: one issue
        f"    exec(compile({BANK.replace('audit', 'check')!r}, 'bank', 'exec'), {{}})\n"
    )
    ran(tmp_path, "bank.py")
    told = ran(tmp_path, "-m", "loopcanary", "report", "--store", "store", "--format", "json").stdout
    (issue,) = (one for one in json.loads(told)["issues"] if one["kind"] == "lock-order")
    assert issue["thread"] == "check"


@pytest.mark.native
def test_no_room_is_said(tmp_path):
    (tmp_path / "many.py").write_text(
        "import threading\n"
        "outer, inner = threading.Lock(), [threading.Lock() for _ in range(8200)]\n"
        "with outer:\n"
        "    for lock in inner:\n"
        "        with lock:\n"
        "            pass\n"
    )
    ran(tmp_path, "-m", "loopcanary", "run", "--lock-order", "many.py")
    said = ran(tmp_path, "-m", "loopcanary", "report").stdout
    assert re.search(r"there was no room for [0-9]+ orders of locks", " ".join(said.split())), said


@pytest.mark.parametrize(
    ("circle", "names"),
    [
        ([("Lock 'a'", "Lock 'Bank.b'"), ("Lock 'b'", "Lock 'Bank.a'")], ("Lock 'Bank.a'", "Lock 'Bank.b'")),
        ([("Lock", "Lock 'b'"), ("Lock", "Lock")], ("Lock", "Lock 'b'")),
        ([("Lock 'A.l'", "Lock 'A.l'"), ("Lock 'A.l'", "Lock 'A.l'")], ("Lock 'A.l' #1", "Lock 'A.l' #2")),
    ],
)
def test_each_lock_of_a_circle_has_one_name(circle, names):
    assert lock_names(circle) == names


@pytest.mark.native
@pytest.mark.parametrize("seconds", [3])
def test_under_load(tmp_path, seconds):
    """Threads, signals, finalizers and forks while it is started and stopped; the program works on."""
    (tmp_path / "load.py").write_text(LOAD)
    assert ran(tmp_path, "load.py", str(seconds)).stdout == "fine\n"
