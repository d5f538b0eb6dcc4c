"""Blocks a Twisted reactor. The variant is its name."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from driving import LONG_S, VARIANT, blocks, drive, own

import_module(f"twisted.internet.{VARIANT}reactor").install()

from twisted.internet import protocol, reactor, task  # noqa: E402 - after the choice
from twisted.python import log  # noqa: E402


def later(function, milliseconds=1):
    reactor.callLater(milliseconds / 1_000, function)


@own
def data_received(clock):
    class Slow(protocol.Protocol):
        def dataReceived(self, data):  # noqa: N802 - Twisted's name
            with clock:
                time.sleep(LONG_S)  # culprit of data_received
            self.transport.write(data)

    class Client(protocol.Protocol):
        def connectionMade(self):  # noqa: N802 - Twisted's name
            clock.before()
            self.transport.write(b"request")

        def dataReceived(self, data):  # noqa: ARG002, N802 - Twisted's name
            clock.after()
            self.transport.loseConnection()
            port.stopListening().addCallback(lambda _: drive.go_on())

    port = reactor.listenTCP(0, protocol.Factory.forProtocol(Slow), interface="127.0.0.1")
    protocol.ClientCreator(reactor, Client).connectTCP("127.0.0.1", port.getHost().port)
    yield


@own
def call_from_thread(clock):
    def slow_call():
        with clock:
            time.sleep(LONG_S)  # culprit of call_from_thread
        drive.then(clock)

    clock.before()
    blocks.HELPER.submit(reactor.callFromThread, slow_call)
    yield


@own
def looping_call(clock):
    def slow_tick():
        if not looping.ticks:
            looping.ticks = 1
            return
        with clock:
            time.sleep(LONG_S)  # culprit of looping_call
        looping.stop()
        drive.then(clock)

    looping = task.LoopingCall(slow_tick)
    looping.ticks = 0
    clock.before()
    looping.start(0.01)
    yield


def fail(event):
    """Ends the program with an error that Twisted would only log: nothing would go on."""
    if event["isError"]:
        sys.stderr.write(f"{log.textFromEventDict(event)}\n")
        os._exit(1)


if __name__ == "__main__":
    log.addObserver(fail)
    drive.later = later
    drive.main(reactor.run, reactor.stop)
