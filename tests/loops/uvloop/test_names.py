"""A callback is named by what the loop called: the outermost function on the stack inside the loop."""

from __future__ import annotations

import asyncio
import socket

import uvloop
from tests.program.programs.blocking import slow


def first():
    slow()


def second():
    slow()


def third():
    slow()


def called(watch):
    """(name of the callback, function that called slow), by report and stacks. Each block lasts until it
    was sampled, so that none is missing, whatever the host did beside it."""
    pairs = set()
    for stall in watch.all_stalls():
        stacks = [[frame.function for frame in stack.frames] for stack in stall.stacks]
        callers = {stack[stack.index("slow") + 1] for stack in stacks if "slow" in stack}
        pairs |= {(stall.callback, caller) for caller in callers}
    return pairs


def run(coroutine):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


class Listens(asyncio.Protocol):
    received = asyncio.Event()

    def data_received(self, data):
        Listens.received.set()
        if data == b"block":
            slow()


def test_a_protocol_s_method_has_its_name(watch):
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
    assert called(watch) == {("Listens.data_received", "data_received")}


def test_a_loop_inside_a_callback_has_its_own_names(watch):
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
    assert called(watch) == {(name, name) for name in ("first", "second", "third")}
