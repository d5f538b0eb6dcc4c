"""What uvloop runs is reported as on asyncio: callbacks, tasks and protocols by name, turns, bursts."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import signal
import socket
import threading
import time

import pytest
import uvloop
from tests.program.programs.blocking import LONG_S, slow

import loopcanary
from loopcanary.model import Cause, StallScope


class SlowProtocol(asyncio.Protocol):
    """Blocks in what a transport calls."""

    def __init__(self, done):
        self._done = done

    def data_received(self, data):  # noqa: ARG002 - asyncio's signature
        slow()

    def connection_lost(self, error):  # noqa: ARG002 - asyncio's signature
        self._done.set_result(None)


class SlowBegin(asyncio.Protocol):
    """Blocks when a client comes."""

    def connection_made(self, transport):
        slow()
        transport.close()


class SlowDatagrams(asyncio.DatagramProtocol):
    def __init__(self, done):
        self._done = done

    def datagram_received(self, data, address):  # noqa: ARG002 - asyncio's signature
        slow()
        self._done.set_result(None)


async def in_a_task():
    async def handler():
        slow()

    await asyncio.create_task(handler(), name="checkout 7")


async def after_a_future():
    """A task's wake-up is not its first step."""
    future = asyncio.get_running_loop().create_future()

    async def waiter():
        await future
        slow()

    task = asyncio.create_task(waiter(), name="waits")
    await asyncio.sleep(0)
    future.set_result(None)
    await task


async def by_call_soon():
    asyncio.get_running_loop().call_soon(slow)
    await asyncio.sleep(0)


async def by_call_soon_with_arguments():
    asyncio.get_running_loop().call_soon(functools.partial(blocks_for, 1), 2)
    await asyncio.sleep(0)


def blocks_for(_first, _second):
    slow()


async def by_call_later():
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.call_later(0.02, slow)
    loop.call_later(0.03, done.set)
    await done.wait()


async def by_call_soon_threadsafe():
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(loop.call_soon_threadsafe, slow)
    await asyncio.sleep(0.01)


async def by_a_reader():
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    ours, theirs = socket.socketpair()

    def readable():
        ours.recv(1)
        loop.remove_reader(ours)
        done.set()
        slow()

    with ours, theirs:
        loop.add_reader(ours, readable)
        theirs.send(b"x")
        await done.wait()


async def by_a_signal():
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def handle_signal():
        done.set()
        slow()

    loop.add_signal_handler(signal.SIGUSR1, handle_signal)
    os.kill(os.getpid(), signal.SIGUSR1)
    await done.wait()
    loop.remove_signal_handler(signal.SIGUSR1)


async def by_a_protocol():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    server = await loop.create_server(lambda: SlowProtocol(done), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"x")
    await writer.drain()
    await asyncio.sleep(0.01)
    writer.close()
    await done
    server.close()


async def by_a_new_connection():
    server = await asyncio.get_running_loop().create_server(SlowBegin, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    writer.close()
    server.close()


async def by_datagrams():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: SlowDatagrams(done), local_addr=("127.0.0.1", 0)
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", transport.get_extra_info("sockname"))
        await done
    transport.close()


SHAPES = {
    in_a_task: ("in_a_task.<locals>.handler", "checkout 7"),
    after_a_future: ("after_a_future.<locals>.waiter", "waits"),
    by_call_soon: ("slow", None),
    by_call_soon_with_arguments: ("blocks_for", None),
    by_call_later: ("slow", None),
    by_call_soon_threadsafe: ("slow", None),
    by_a_reader: ("by_a_reader.<locals>.readable", None),
    by_a_signal: ("by_a_signal.<locals>.handle_signal", None),
    by_a_protocol: ("SlowProtocol.data_received", None),
    by_a_new_connection: ("SlowBegin.connection_made", None),
    by_datagrams: ("SlowDatagrams.datagram_received", None),
}

ENTERS_FOR_PROTOCOLS = tuple(map(int, uvloop.__version__.split(".")[:2])) >= (0, 23)
"""Older ones call protocols by Context.run: what they do counts for the turn."""


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("program", SHAPES, ids=lambda program: program.__name__)
def test_a_block_is_a_stall_with_the_name_of_what_ran(watch, program, debug):
    if program in (by_a_protocol, by_datagrams) and not ENTERS_FOR_PROTOCOLS:
        pytest.skip("this uvloop enters no context for protocols")
    with watch.installed():
        uvloop.run(program(), debug=debug)
    (stall,) = watch.stalls()
    assert (stall.loop, stall.scope) == ("uvloop", StallScope.CALLBACK)
    assert (stall.callback, stall.task) == SHAPES[program]
    assert stall.culprit.function == "slow"
    assert stall.duration_ns >= LONG_S * 1e9


def test_waits_and_time_after_the_loop_are_no_stall(watch):
    async def waits():
        await asyncio.sleep(2 * LONG_S)

    with watch.installed():
        uvloop.run(waits())
        time.sleep(LONG_S)
    assert watch.stalls() == []


def test_turns_callbacks_and_delays_are_counted(watch):
    async def works():
        for _ in range(20):
            await asyncio.sleep(0.001)

    with watch.installed() as canary:
        uvloop.run(works())
        (loop,) = canary.loops()
    assert loop.kind == "uvloop"
    assert loop.turns >= 20
    assert loop.callbacks >= 20
    assert loop.busy_ns < loop.window_ns


def test_many_short_callbacks_are_a_burst(watch):
    longest_s = 0.0

    def part():
        nonlocal longest_s
        began = time.monotonic()
        time.sleep(0.002)
        longest_s = max(longest_s, time.monotonic() - began)

    async def main():
        for _ in range(500):
            asyncio.get_running_loop().call_soon(part)
        await asyncio.sleep(0)

    with watch.installed(threshold="500ms", sample_delay="20ms"):
        uvloop.run(main())
    if longest_s >= 0.5:
        pytest.skip("the host stopped one of them, so that it is the stall")
    assert any(stall.scope is StallScope.TURN for stall in watch.all_stalls())
    # Where they had to wait for a core, the host has the greater part.
    assert {stall.cause for stall in watch.stalls() if stall.scope is StallScope.TURN} <= {Cause.BURST}


def test_scenes_are_those_of_the_callback_s_context(watch):
    async def program():
        with loopcanary.scene("checkout"):
            asyncio.get_running_loop().call_soon(slow)
        await asyncio.sleep(0.01)

    with watch.installed():
        uvloop.run(program())
    (stall,) = watch.stalls()
    assert stall.scene == "checkout"


def test_a_callback_runs_in_the_context_it_was_given(watch):
    variable = contextvars.ContextVar("variable")
    context = contextvars.copy_context()
    context.run(variable.set, "inside")
    seen = []

    async def program():
        asyncio.get_running_loop().call_soon(lambda: seen.append(variable.get()), context=context)
        await asyncio.sleep(0.01)
        assert variable.get("outside") == "outside"

    with watch.installed():
        uvloop.run(program())
    assert seen == ["inside"]


@pytest.mark.skipif(not ENTERS_FOR_PROTOCOLS, reason="this uvloop enters no context for protocols")
def test_a_pause_made_by_a_write_is_no_callback(watch):
    """Inside a callback that writes, the transport tells its protocol to pause: in a context of its own."""
    paused = threading.Event()

    class Writer(asyncio.Protocol):
        def connection_made(self, transport):
            self._transport = transport
            transport.set_write_buffer_limits(high=1024)

        def pause_writing(self):
            paused.set()

        def data_received(self, data):  # noqa: ARG002 - asyncio's signature
            slow()
            while not paused.is_set():
                self._transport.write(b"x" * 1_000_000)

    async def program():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Writer, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x")
        await asyncio.to_thread(paused.wait)
        writer.close()
        server.close()
        await asyncio.sleep(0.01)

    with watch.installed():
        uvloop.run(program())
    stall = watch.stalls()[0]
    assert stall.callback.endswith("Writer.data_received")
    assert stall.culprit.function == "slow"
