"""Blocks its event loop in every way that programs do, one after the other, and writes down the truth.

    blocks.py TRUTH_FILE FOLDER [KIND...]

Each kind is a function; the line that blocks bears a `culprit` comment. FOLDER is for files of the
program's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import hashlib
import json
import math
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from clock import BlockClock, cpu_of, sized

LONG_S = 0.25
FOLDER = Path()
KINDS = {}
KEPT = []
HELPER = ThreadPoolExecutor(max_workers=1)
THE_END = threading.Event()
"""Never set: a thread that waits for it is alive, and has its name, when the report is written."""


def kind(drive):
    """Registers a block; `drive(block, clock)` makes it happen."""

    def register(block):
        KINDS[block.__name__] = (drive, block)
        return block

    return register


# ---- how a block comes about --------------------------------------------------------------------


async def in_a_task(block, clock):
    async def task():
        block(clock, *prepared)

    prepared = await prepare(block)
    asyncio.get_running_loop().call_soon(clock.before)
    running = asyncio.create_task(task(), name=f"task of {clock.name}")
    asyncio.get_running_loop().call_soon(clock.after)
    await running


async def prepare(block):
    """What a block needs; made on another thread, where it blocks no loop."""
    make = getattr(block, "prepare", None)
    return () if make is None else (await elsewhere(make),)


async def elsewhere(function):
    return await asyncio.get_running_loop().run_in_executor(HELPER, function)


def needs(make):
    def attach(block):
        block.prepare = make
        return block

    return attach


async def by_itself(block, clock):
    """The block is a coroutine function that arranges everything."""
    await block(clock)


# ---- computing in C, with the GIL held ------------------------------------------------------------


def catastrophe():
    def match(count):
        re.match("(a+)+$", "a" * count + "b")

    # One letter more takes twice as long.
    return 18 + math.ceil(math.log2(LONG_S / cpu_of(lambda: match(18))))


@kind(in_a_task)
@needs(catastrophe)
def regex(clock, count):
    with clock:
        re.match("(a+)+$", "a" * count + "b")  # culprit


def body():
    record = '{"id": 12345, "name": "somebody", "tags": ["a", "b", "c"], "score": 1.25}'
    many = sized(lambda count: json.loads("[" + ",".join([record] * count) + "]"), 2_000, LONG_S)
    return "[" + ",".join([record] * many) + "]"


@kind(in_a_task)
@needs(body)
def json_body(clock, text):
    with clock:
        parsed = json.loads(text)  # culprit
    KEPT.append(parsed)  # to free it takes long as well


@kind(in_a_task)
def c_call_with_the_gil(clock):
    with clock:
        ctypes.PyDLL(None).usleep(int(LONG_S * 1e6))  # culprit


@kind(in_a_task)
@needs(lambda: [[i] for i in range(400_000)])
def collection(clock, heap):
    rounds = 0
    with clock:
        while rounds < 3 or time.perf_counter_ns() - clock.facts["begin_ns"] < LONG_S * 1e9:
            gc.collect()  # culprit
            rounds += 1


# ---- computing in C, with the GIL released -----------------------------------------------------------


def hash_rounds():
    return sized(lambda count: hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", count), 20_000, LONG_S)


@kind(in_a_task)
@needs(hash_rounds)
def password_hash(clock, rounds):
    with clock:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", rounds)  # culprit


def bytes_to_compress():
    unit = os.urandom(1 << 16)
    return unit * sized(lambda count: zlib.compress(unit * count), 40, LONG_S)


@kind(in_a_task)
@needs(bytes_to_compress)
def compress(clock, data):
    with clock:
        zlib.compress(data)  # culprit


@kind(in_a_task)
def c_call_without_the_gil(clock):
    with clock:
        ctypes.CDLL(None).usleep(int(LONG_S * 1e6))  # culprit


# ---- computing in Python -----------------------------------------------------------------------------


@kind(in_a_task)
def python_loop(clock):
    total = 0
    with clock:
        until = time.thread_time() + LONG_S
        while time.thread_time() < until:
            for number in range(2_000):
                total = (31 * total + number * number) % 1_000_003 ^ (number + 7 * total)  # culprit


SLOW_MODULE = "slow_module"


def write_slow_module():
    """So much source that compiling it takes long."""
    line = "table_{0} = {{'a': [1, 2, 3], 'b': (lambda x: x + {0})}}"
    source = "\n".join(line.format(number) for number in range(1_000))
    rounds = math.ceil(LONG_S / cpu_of(lambda: compile(source, "slow_module.py", "exec")))
    (FOLDER / f"{SLOW_MODULE}.py").write_text("\n".join([source] * rounds))


@kind(in_a_task)
@needs(write_slow_module)
def slow_import(clock, nothing):
    with clock:
        import slow_module  # noqa: F401  # culprit


# ---- waiting -----------------------------------------------------------------------------------------


@kind(in_a_task)
def sleep(clock):
    with clock:
        time.sleep(LONG_S)  # culprit


def keep_for_long(lock, is_kept, is_wanted):
    with lock:
        is_kept.set()
        is_wanted.wait()
        time.sleep(LONG_S)


def kept_lock():
    lock, is_kept, is_wanted = threading.Lock(), threading.Event(), threading.Event()
    keeper = threading.Thread(target=keep_for_long, args=(lock, is_kept, is_wanted), name="keeper")
    keeper.start()
    is_kept.wait()
    return lock, is_wanted, keeper


@kind(in_a_task)
@needs(kept_lock)
def held_lock(clock, kept):
    lock, is_wanted, keeper = kept
    with clock:
        is_wanted.set()
        lock.acquire()  # culprit
    lock.release()
    keeper.join()


@kind(in_a_task)
def empty_queue(clock):
    waiting = queue.Queue()
    with clock, contextlib.suppress(queue.Empty):
        waiting.get(timeout=LONG_S)  # culprit


def sleeper():
    is_wanted = threading.Event()
    worker = threading.Thread(target=lambda: (is_wanted.wait(), time.sleep(LONG_S)))
    worker.start()
    return worker, is_wanted


@kind(in_a_task)
@needs(sleeper)
def thread_join(clock, sleeps):
    """A start would wait for the thread, too: on a busy machine for long."""
    worker, is_wanted = sleeps
    with clock:
        is_wanted.set()
        worker.join()  # culprit


@kind(in_a_task)
def child_process(clock):
    with clock:
        subprocess.run(["sleep", str(LONG_S)], check=True)  # culprit


@kind(in_a_task)
def synced_file(clock):
    page = os.urandom(1 << 16)
    with (FOLDER / "journal").open("wb", buffering=0) as journal, clock:
        while time.perf_counter_ns() - clock.facts["begin_ns"] < LONG_S * 1e9:
            journal.write(page)
            os.fsync(journal.fileno())  # culprit


# ---- where a callback comes from ---------------------------------------------------------------------


class SlowProtocol(asyncio.Protocol):
    def __init__(self, clock, answered):
        self.clock = clock
        self.answered = answered

    def data_received(self, data):  # noqa: ARG002
        with self.clock:
            time.sleep(LONG_S)  # culprit of data_received
        self.answered.set_result(None)


@kind(by_itself)
async def data_received(clock):
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    answered = loop.create_future()
    transport, _ = await loop.create_connection(lambda: SlowProtocol(clock, answered), sock=ours)
    clock.before()
    theirs.send(b"request")
    await answered
    clock.after()
    transport.close()
    theirs.close()


@kind(by_itself)
async def loop_signal_handler(clock):
    def handle():
        with clock:
            time.sleep(LONG_S)  # culprit of loop_signal_handler
        handled.set_result(None)

    loop = asyncio.get_running_loop()
    handled = loop.create_future()
    loop.add_signal_handler(signal.SIGUSR1, handle)
    clock.before()
    os.kill(os.getpid(), signal.SIGUSR1)
    await handled
    clock.after()
    loop.remove_signal_handler(signal.SIGUSR1)


@kind(in_a_task)
def python_signal_handler(clock):
    def handle(number, frame):
        with clock:
            time.sleep(LONG_S)  # culprit of python_signal_handler

    before = signal.signal(signal.SIGUSR2, handle)
    os.kill(os.getpid(), signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, before)


@kind(by_itself)
async def signal_handler_while_the_loop_waits(clock):
    def handle(number, frame):
        with clock:
            time.sleep(LONG_S)  # culprit of signal_handler_while_the_loop_waits
        handled.append(True)

    handled = []
    before = signal.signal(signal.SIGALRM, handle)
    clock.before()
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while not handled:  # noqa: ASYNC110 - an Event is not for signal handlers
        await asyncio.sleep(0.05)
    clock.after()
    signal.signal(signal.SIGALRM, before)


@kind(by_itself)
async def timer(clock):
    def ring():
        with clock:
            time.sleep(LONG_S)  # culprit of timer
        rung.set_result(None)

    loop = asyncio.get_running_loop()
    rung = loop.create_future()
    clock.before()
    loop.call_later(0.002, ring)
    await rung
    clock.after()


async def pages(clock):
    with clock:
        time.sleep(LONG_S)  # noqa: ASYNC251  # culprit of async_generator
    yield "page"


@kind(by_itself)
async def async_generator(clock):
    async def reader():
        async for _ in pages(clock):
            pass

    asyncio.get_running_loop().call_soon(clock.before)
    task = asyncio.create_task(reader(), name=f"task of {clock.name}")
    asyncio.get_running_loop().call_soon(clock.after)
    await task


@kind(by_itself)
async def exception_handler(clock):
    def tell(loop, context):
        with clock:
            time.sleep(LONG_S)  # culprit of exception_handler
        told.set_result(None)

    def fail():
        raise LookupError("as it must")

    loop = asyncio.get_running_loop()
    told = loop.create_future()
    loop.set_exception_handler(tell)
    clock.before()
    loop.call_soon(fail)
    await told
    clock.after()
    loop.set_exception_handler(None)


# ---- turns ------------------------------------------------------------------------------------------


def half_a_millisecond(clock):
    began = time.perf_counter_ns()
    while time.perf_counter_ns() < began + 500_000:  # culprit of burst
        pass
    took_ns = time.perf_counter_ns() - began
    clock.facts["longest_callback_ns"] = max(took_ns, clock.facts.get("longest_callback_ns", 0))


@kind(by_itself)
async def burst(clock):
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def arrange():
        clock.before()
        loop.call_soon(clock.__enter__)
        for _ in range(1_000):
            loop.call_soon(half_a_millisecond, clock)
        loop.call_soon(clock.__exit__)
        loop.call_soon(done.set_result, None)

    loop.call_soon(arrange)
    await done
    clock.after()


def first_long(clock):
    with clock:
        time.sleep(LONG_S)  # culprit of first_of_two


def second_long(clock):
    with clock:
        time.sleep(LONG_S)  # culprit of second_of_two


@kind(by_itself)
async def two_in_one_turn(clock):
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    first, second = BlockClock("first_of_two"), BlockClock("second_of_two")
    for step in (
        first.before,
        lambda: first_long(first),
        lambda: (first.after(), second.before()),
        lambda: second_long(second),
        second.after,
        lambda: done.set_result(None),
    ):
        loop.call_soon(step)
    await done
    clock.facts["parts"] = [first.facts, second.facts]


# ---- other threads ------------------------------------------------------------------------------------


def hog(go, stop):
    go.wait()
    while not stop:  # holder of gil_hog
        pass
    THE_END.wait()


def hogs():
    go, stop = threading.Event(), []
    for number in range(4):
        threading.Thread(target=hog, args=(go, stop), name=f"hog {number}", daemon=True).start()
    return go, stop


@kind(in_a_task)
@needs(hogs)
def gil_hog(clock, prepared):
    go, stop = prepared
    # Longer than the others: a watchdog in Python competes for the GIL, too.
    until = time.perf_counter_ns() + 4 * LONG_S * 1e9
    go.set()
    with clock:
        while time.perf_counter_ns() < until:  # culprit
            pass
    stop.append(True)


def hold_the_gil(go, is_over):
    go.wait()
    time.sleep(0.02)
    ctypes.PyDLL(None).usleep(int(LONG_S * 1e6))  # holder of gil_taken_while_the_loop_waits
    is_over.append(True)
    THE_END.wait()


@kind(by_itself)
async def gil_taken_while_the_loop_waits(clock):
    """Timers come due while another thread is in a C call that keeps the GIL."""
    go, is_over = threading.Event(), []
    keeper = threading.Thread(target=hold_the_gil, args=(go, is_over), name="keeper of the gil", daemon=True)
    await elsewhere(keeper.start)
    clock.before()
    go.set()
    while not is_over:  # noqa: ASYNC110 - timers that come due are what it is about
        await asyncio.sleep(0.002)
    clock.after()


# ---- all of them -----------------------------------------------------------------------------------


async def main(truth_file, wanted):
    asyncio.current_task().set_name("driver")
    truth = []
    gc.disable()  # collections come when `collection` says so
    for name, (drive, block) in KINDS.items():
        if not wanted or name in wanted:
            await asyncio.sleep(0.001)
            clock = BlockClock(name)
            await drive(block, clock)
            truth.extend(clock.facts.pop("parts", [clock.facts]))
    truth_file.write_text(json.dumps(truth))


if __name__ == "__main__":
    FOLDER = Path(sys.argv[2])
    sys.path.append(str(FOLDER))
    # To start a thread is to wait until it runs, which can take long: not in the loop.
    HELPER.submit(int).result()
    asyncio.run(main(Path(sys.argv[1]), sys.argv[3:]))
