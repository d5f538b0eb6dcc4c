"""What runs is looked up while it runs, by whoever wants to know: a name is that of the handle that runs, or
there is none.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import shutil
import socket
import subprocess
import sys

import pytest
import uvloop
from tests.program.programs.blocking import slow

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")


def first():
    slow()


def second():
    slow()


def third():
    slow()


def nothing():
    pass


def called(watch):
    """(name of the callback, function that called slow), as told and as its stacks say."""
    pairs = []
    for stall in watch.stalls():
        stacks = [[frame.function for frame in stack.frames] for stack in stall.stacks]
        callers = {stack[stack.index("slow") + 1] for stack in stacks if "slow" in stack}
        pairs += [(stall.callback, caller) for caller in callers]
    return pairs


def run(coroutine):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


def test_handles_of_one_context_that_are_kept_are_told_apart(watch):
    """Of all that is left of them on the stack and in memory only the handle that runs is the one."""
    context, kept = contextvars.copy_context(), []

    async def program():
        loop = asyncio.get_running_loop()
        for _ in range(2):
            for function in (first, nothing, second, nothing, third):
                kept.append(loop.call_soon(nothing, context=context))
                kept.append(loop.call_soon(function, context=context))
                kept.append(loop.call_soon(nothing, context=context))
            await asyncio.sleep(0.01)

    with watch.installed():
        run(program())
    pairs = called(watch)
    assert pairs  # some, on a crowded machine: what was the host's is none of these
    assert set(pairs) <= {(name, name) for name in ("first", "second", "third")}


def test_a_handle_that_is_gone_while_its_callback_runs_has_no_other_s_name(watch):
    """What it held was given back, and its memory's like is used again."""
    handles = []

    def cancels():
        handles.pop().cancel()
        for _ in range(300):
            loop.call_soon(nothing)
        slow()

    loop = uvloop.new_event_loop()
    with watch.installed():
        for _ in range(5):
            handles.append(loop.call_soon(cancels))
            loop.call_soon(loop.stop)
            loop.run_forever()
    loop.close()
    pairs = called(watch)
    assert pairs  # some, on a crowded machine: what was the host's is none of these
    # Its own name: it was looked at before it was cancelled.
    assert set(pairs) <= {(None, "cancels"), (cancels.__qualname__, "cancels")}


class Listens(asyncio.Protocol):
    received = asyncio.Event()

    def data_received(self, data):
        Listens.received.set()
        if data == b"block":
            slow()


def test_a_protocol_s_method_has_its_name_however_often_it_was_called(watch):
    """Compilers keep copies of it in several words: each is the one that runs, connection by connection."""

    async def program():
        loop, ends = asyncio.get_running_loop(), []
        for _ in range(3):
            ours, theirs = socket.socketpair()
            await loop.connect_accepted_socket(Listens, ours)
            ends.append(theirs)
        for data in [b"quick"] * 50 + [b"block"]:
            for end in ends:
                Listens.received.clear()
                end.send(data)
                await Listens.received.wait()
        for end in ends:
            end.close()

    with watch.installed():
        run(program())
    pairs = called(watch)
    assert pairs  # some, on a crowded machine
    assert set(pairs) == {("Listens.data_received", "data_received")}


def contexts():
    """Where there are any."""
    return (id(each) for each in gc.get_objects() if type(each) is contextvars.Context)


def test_what_was_a_loop_s_own_is_nobody_s_once_it_is_gone(watch):
    """The context of the handle that runs the queue is freed with its loop; one of ours lies there."""
    with watch.installed():
        known = set(contexts())
        loop = uvloop.new_event_loop()
        its_own = set(contexts()) - known
        following = uvloop.new_event_loop()
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        del loop
        gc.collect()
        there = [contextvars.copy_context() for _ in range(20_000)]
        reused = [each for each in there if id(each) in its_own]
        if not reused:
            pytest.skip("its memory serves something else")
        for context in reused * 5:
            following.call_soon(first, context=context)
        following.call_soon(following.stop)
        following.run_forever()
        following.close()
    pairs = called(watch)
    assert pairs  # some, on a crowded machine
    assert set(pairs) == {("first", "first")}


def test_a_loop_inside_a_callback_has_its_own_names_and_leaves_the_outer_ones(watch):
    def runs_a_loop():
        outer = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        inner = uvloop.new_event_loop()
        inner.call_soon(second)
        inner.call_soon(inner.stop)
        inner.run_forever()
        inner.close()
        asyncio._set_running_loop(outer)

    async def program():
        loop = asyncio.get_running_loop()
        for function in (first, runs_a_loop, third):
            loop.call_soon(function)
        await asyncio.sleep(0.01)

    with watch.installed():
        run(program())
    pairs = called(watch)
    assert pairs  # some, on a crowded machine: what was the host's is none of these
    assert set(pairs) <= {(name, name) for name in ("first", "second", "third")}


# ---- what a callback costs ---------------------------------------------------------------------

COUNTER = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned long reads;

unsigned long careful_reads(void) { return reads; }

/* Those of the main thread. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *ours, unsigned long our_count,
                         const struct iovec *theirs, unsigned long their_count, unsigned long flags)
{
    reads += syscall(SYS_gettid) == getpid();
    return syscall(SYS_process_vm_readv, pid, ours, our_count, theirs, their_count, flags);
}
"""

PROGRAM = """
import asyncio, ctypes, uvloop
import loopcanary

careful_reads = ctypes.CDLL(None).careful_reads
careful_reads.restype = ctypes.c_ulong


async def echo(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
        await writer.drain()
    writer.close()


async def work(count):
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for _ in range(count):
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        await asyncio.sleep(0)
    writer.close()
    server.close()


async def main():
    await work(100)
    learned = careful_reads()
    await work(2000)
    print(learned, careful_reads() - learned)


# Nothing is long enough to be looked at: callbacks of long turns are read at once each.
loopcanary.install(store="store", quiet=True, engine="native", threshold="100s", sample_delay="50s")
uvloop.run(main())
"""


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_what_is_learned_is_not_read_again_at_each_callback(tmp_path, package_path):
    source, counter, program = tmp_path / "counter.c", tmp_path / "counter.so", tmp_path / "program.py"
    source.write_text(COUNTER)
    program.write_text(PROGRAM)
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", counter, source], check=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(counter)]))
    done = subprocess.run(
        [sys.executable, program],
        env={**clean, "PYTHONPATH": str(package_path), "LD_PRELOAD": preload},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    learned, later = map(int, done.stdout.split())
    assert learned > 0
    # Two callbacks at least, the queue and the writes for each of 2,000 rounds. Read are new connections, and
    # callbacks that the machine interrupts for a millisecond, to be named when they end.
    assert later < 2_000
