"""Blocks a Twisted reactor in the ways of tests/program/programs/blocks.py, and in some of its own.

reactor_blocks.py BLOCKS_FOLDER REACTOR TRUTH_FILE FOLDER [KIND...]
"""

from __future__ import annotations

import gc
import json
import sys
import time
from importlib import import_module
from pathlib import Path

sys.path.insert(0, sys.argv[1])
blocks = import_module("blocks")
import_module(f"twisted.internet.{sys.argv[2]}reactor").install()

from clock import BlockClock  # noqa: E402 - of that folder
from twisted.internet import defer, protocol, reactor, task, threads  # noqa: E402 - after the choice
from twisted.internet.defer import inlineCallbacks  # noqa: E402

LONG_S = blocks.LONG_S
OWN = {}


def own(block):
    OWN[block.__name__] = block
    return block


def pause(seconds=0.001):
    return task.deferLater(reactor, seconds)


@inlineCallbacks
def by_a_delayed_call(block, clock):
    """As a function that the reactor calls by itself."""
    make = getattr(block, "prepare", None)
    prepared = [] if make is None else [(yield threads.deferToThread(make))]
    done = defer.Deferred()

    def call():
        block(clock, *prepared)
        reactor.callLater(0, arrive)

    def arrive():
        clock.after()
        reactor.callLater(0, done.callback, None)

    yield pause()
    clock.before()
    reactor.callLater(0, call)
    yield done


@own
@inlineCallbacks
def data_received(clock):
    class Slow(protocol.Protocol):
        def dataReceived(self, data):  # noqa: N802 - Twisted's name
            with clock:
                time.sleep(LONG_S)  # culprit of dataReceived
            self.transport.write(data)

    class Client(protocol.Protocol):
        def connectionMade(self):  # noqa: N802 - Twisted's name
            clock.before()
            self.transport.write(b"request")

        def dataReceived(self, data):  # noqa: ARG002, N802 - Twisted's name
            clock.after()
            answered.callback(None)

    answered = defer.Deferred()
    factory = protocol.Factory.forProtocol(Slow)
    port = reactor.listenTCP(0, factory, interface="127.0.0.1")
    creator = protocol.ClientCreator(reactor, Client)
    client = yield creator.connectTCP("127.0.0.1", port.getHost().port)
    yield answered
    client.transport.loseConnection()
    yield port.stopListening()


@own
@inlineCallbacks
def call_from_thread(clock):
    def slow_call():
        with clock:
            time.sleep(LONG_S)  # culprit of slow_call

    yield pause()
    clock.before()
    yield threads.deferToThread(reactor.callFromThread, slow_call)
    yield pause()
    clock.after()


@own
@inlineCallbacks
def looping_call(clock):
    def slow_tick():
        if not looping.ticks:
            looping.ticks = 1
            return
        with clock:
            time.sleep(LONG_S)  # culprit of slow_tick
        looping.stop()

    looping = task.LoopingCall(slow_tick)
    looping.ticks = 0
    clock.before()
    yield looping.start(0.01)
    yield pause()
    clock.after()


@own
@inlineCallbacks
def burst(clock):
    def short():
        until = time.perf_counter_ns() + 500_000
        while time.perf_counter_ns() < until:  # culprit of short
            pass
        took = time.perf_counter_ns() - until + 500_000
        clock.facts["longest_callback_ns"] = max(took, clock.facts.get("longest_callback_ns", 0))

    yield pause()
    clock.before()
    for _ in range(600):
        reactor.callLater(0, short)
    yield pause(0.02)
    clock.after()


@inlineCallbacks
def main(truth_file, wanted):
    gc.disable()
    truth = []
    for name in wanted:
        clock = BlockClock(name)
        yield OWN[name](clock) if name in OWN else by_a_delayed_call(blocks.KINDS[name][1], clock)
        truth.append(clock.facts)
    truth_file.write_text(json.dumps(truth))


def fail(failure):
    failure.printTraceback(sys.stderr)


blocks.FOLDER = Path(sys.argv[4])
sys.path.append(sys.argv[4])
reactor.callWhenRunning(
    lambda: main(Path(sys.argv[3]), sys.argv[5:]).addErrback(fail).addBoth(lambda _: reactor.stop())
)
reactor.run()
