"""Loops of uvloop's that never wait, since the same work asks for itself anew each time."""

from __future__ import annotations

from tests.loops.spinning import assert_nothing_spins, assert_spins_are_told

SPINS = """
import asyncio, signal
import loopcanary, uvloop
from loopcanary.tracers.idle import IdleTracer

def is_told(name):
    return any(work["name"] == name for work in loopcanary.statistics().get("idle", ()))

async def wait_impatiently(name):
    rounds = 0
    while rounds % 1000 or not is_told(name):
        rounds += 1
        await asyncio.sleep(0)

class Poller:
    def ask_again(self):  # a bound method is a new object each time
        asyncio.get_running_loop().call_soon(self.ask_again)

class Stop(KeyboardInterrupt):
    pass

def stop(number, frame):
    raise Stop("as the program wants it")

def tell_and_stop(self, *what):  # the signal comes while we are at it
    tell(self, *what)
    signal.raise_signal(signal.SIGUSR1)
    for _ in range(1000):
        pass

async def main():
    await wait_impatiently("main (task)")
    await asyncio.sleep(0.01)
    IdleTracer.spun = tell_and_stop
    Poller().ask_again()
    await asyncio.Event().wait()

tell = IdleTracer.spun
signal.signal(signal.SIGUSR1, stop)
try:
    uvloop.run(main())
except Stop as stopped:
    print(*stopped.args)
"""

WAITS = """
import asyncio, socket, time
import uvloop

async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line)
        await asyncio.gather(*[asyncio.sleep(0) for _ in range(5)])

async def ask(port, until):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        writer.write(b"how are you?\\n")
        await reader.readline()
    writer.close()

async def play(until):
    while time.monotonic() < until:
        await asyncio.sleep(1 / 60)

async def make_progress(until):
    while time.monotonic() < until:
        step = min(until, time.monotonic() + 0.3)
        while time.monotonic() < step:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)

async def main():
    until = time.monotonic() + 1.2
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(play(until), make_progress(until), *[ask(port, until) for _ in range(10)])
    server.close()

    # Each turn has an event: so it is under load.
    until = time.monotonic() + 1.2
    one, other = socket.socketpair()
    other.send(b"never read")
    asyncio.get_running_loop().add_reader(one, len, b"")
    while time.monotonic() < until:
        await asyncio.sleep(0)

uvloop.run(main())
"""


def test_work_that_asks_for_itself_is_told_by_name(tmp_path):
    done = assert_spins_are_told(tmp_path, SPINS, "uvloop", {"main (task)", "Poller.ask_again"})
    assert done.stdout == "as the program wants it\n"  # whatever else was on the way


def test_games_services_under_load_and_progress_do_not_spin(tmp_path):
    assert_nothing_spins(tmp_path, WAITS)
