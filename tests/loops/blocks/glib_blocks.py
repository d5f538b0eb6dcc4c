"""Blocks a main loop of GLib's. The variant is the store, as this program installs loopcanary itself."""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from driving import LONG_S, VARIANT, blocks, drive, fail, own

import loopcanary

loopcanary.install(store=VARIANT, console="off", engine="native")

from gi.repository import GLib, GObject  # noqa: E402 - watched from its import on


def later(function, milliseconds=1):
    def once():
        function()
        return GLib.SOURCE_REMOVE

    once.__qualname__ = function.__qualname__ if hasattr(function, "__qualname__") else "once"
    GLib.timeout_add(milliseconds, once)


class Thing(GObject.Object):
    __gsignals__ = {"poked": (GObject.SignalFlags.RUN_FIRST, None, ())}  # noqa: RUF012 - PyGObject's way


@own
def idle(clock):
    def when_idle(what):
        assert what == "the list"
        with clock:
            time.sleep(LONG_S)  # culprit of idle
        drive.then(clock)
        return GLib.SOURCE_REMOVE

    clock.before()
    GLib.idle_add(partial(when_idle, "the list"))
    yield


@own
def signal(clock):
    """Handlers of signals are called by GObject: in a source's callback they are its."""

    def on_poked(thing):
        with clock:
            time.sleep(LONG_S)  # culprit of signal
        drive.then(clock)

    thing = Thing()
    thing.connect("poked", on_poked)
    clock.before()
    GLib.timeout_add(1, thing.emit, "poked")
    yield


@own
def signal_of_a_watch(clock):
    """The handler is the first of the program's functions with a name; after a loop inside it, too."""

    def on_poked(thing, what):
        assert what == "twice"
        inner = GLib.MainLoop()
        later(inner.quit, 200)
        inner.run()
        with clock:
            time.sleep(LONG_S)  # culprit of signal_of_a_watch
        drive.then(clock)

    def readable(descriptor, condition):
        thing.emit("poked")
        return GLib.SOURCE_REMOVE

    thing = Thing()
    thing.connect("poked", partial(on_poked), "twice")
    reading, writing = os.pipe()
    GLib.io_add_watch(reading, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, readable)
    clock.before()
    os.write(writing, b"x")
    yield
    os.close(reading)
    os.close(writing)


@own
def io_watch(clock):
    """A source that no function of ours is around: its turn is seen."""

    def readable(descriptor, condition):
        os.read(reading, 1)
        with clock:
            time.sleep(LONG_S)  # culprit of io_watch
        drive.then(clock)
        return GLib.SOURCE_REMOVE

    reading, writing = os.pipe()
    GLib.io_add_watch(reading, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, readable)
    drive.go_on()
    yield
    clock.before()
    os.write(writing, b"x")
    yield
    os.close(reading)
    os.close(writing)


@own
def context_of_its_own(clock):
    """A loop on another context, on another thread."""

    def inside(*ignored):
        with clock:
            time.sleep(LONG_S)  # culprit of context_of_its_own
        return GLib.SOURCE_REMOVE

    def work():
        context = GLib.MainContext()
        other = GLib.MainLoop(context)
        for delay_ms, function in ((50, inside), (400, lambda *_: other.quit())):
            source = GLib.timeout_source_new(delay_ms)
            source.set_callback(function)
            source.attach(context)
        other.run()

    clock.before()
    blocks.HELPER.submit(work).add_done_callback(lambda _: drive.then(clock))
    yield


class Inner:
    def __init__(self):
        loop = GLib.MainLoop()
        self.run, self.end = loop.run, loop.quit


if __name__ == "__main__":
    sys.excepthook = fail
    drive.later, drive.inner, loop = later, Inner, GLib.MainLoop()
    drive.main(loop.run, loop.quit)
    loopcanary.uninstall()
