"""Blocks a main loop of GLib's in the ways of tests/program/programs/blocks.py, and in some of its own.

loop_blocks.py BLOCKS_FOLDER STORE TRUTH_FILE FOLDER [KIND...]
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import loopcanary

loopcanary.install(store=sys.argv[2], quiet=True, engine="native")

from gi.repository import GLib, GObject  # noqa: E402 - watched from its import on

sys.path.insert(0, sys.argv[1])
blocks = import_module("blocks")

from clock import BlockClock  # noqa: E402 - of that folder

LONG_S = blocks.LONG_S
OWN = {}


def own(block):
    OWN[block.__name__] = block
    return block


def later(function, *arguments, milliseconds=1):
    def once(*given):
        function(*given)
        return GLib.SOURCE_REMOVE

    once.__qualname__ = function.__qualname__ if hasattr(function, "__qualname__") else "once"
    GLib.timeout_add(milliseconds, once, *arguments)


class Driver:
    """Runs a generator: where it yields, it waits until `go_on` is called."""

    def __init__(self, generator):
        self._generator = generator

    def go_on(self):
        later(self._step)

    def _step(self):
        next(self._generator, None)


def elsewhere(function, go_on, results):
    """On another thread, while the loop runs."""

    def check():
        if future.done():
            results.append(future.result())
            go_on()
        else:
            later(check, milliseconds=5)

    future = blocks.HELPER.submit(function)
    check()


def by_timeout(block, clock, go_on):
    def call():
        block(clock, *prepared)
        later(then, clock, go_on)

    make = getattr(block, "prepare", None)
    prepared = []
    if make is not None:
        elsewhere(make, go_on, prepared)
        yield
    go_on()
    yield
    clock.before()
    later(call)
    yield


def then(clock, go_on):
    """The first thing after the block."""
    clock.after()
    go_on()


class Thing(GObject.Object):
    __gsignals__ = {"poked": (GObject.SignalFlags.RUN_FIRST, None, ())}  # noqa: RUF012 - PyGObject's way


@own
def idle(clock, go_on):
    def when_idle(what):
        assert what == "the list"
        with clock:
            time.sleep(LONG_S)  # culprit of when_idle
        later(then, clock, go_on)
        return GLib.SOURCE_REMOVE

    clock.before()
    GLib.idle_add(partial(when_idle, "the list"))
    yield


@own
def signal(clock, go_on):
    """Handlers of signals are called by GObject: in a source's callback they are its."""

    def on_poked(thing):
        with clock:
            time.sleep(LONG_S)  # culprit of on_poked
        later(then, clock, go_on)

    thing = Thing()
    thing.connect("poked", on_poked)
    clock.before()
    later(thing.emit, "poked")
    yield


@own
def signal_of_a_watch(clock, go_on):
    """The handler is the first of the program's functions with a name; after a loop inside it, too."""

    def on_poked(thing, what):
        assert what == "twice"
        inner = GLib.MainLoop()
        later(inner.quit, milliseconds=200)
        inner.run()
        with clock:
            time.sleep(LONG_S)  # culprit of on_poked_by_a_watch
        later(then, clock, go_on)

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
def io_watch(clock, go_on):
    """A source that no function of ours is around: its turn is seen."""

    def readable(descriptor, condition):
        os.read(reading, 1)
        with clock:
            time.sleep(LONG_S)  # culprit of readable
        later(then, clock, go_on)
        return GLib.SOURCE_REMOVE

    reading, writing = os.pipe()
    GLib.io_add_watch(reading, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN, readable)
    go_on()
    yield
    clock.before()
    os.write(writing, b"x")
    yield
    os.close(reading)
    os.close(writing)


@own
def in_an_inner_loop(clock, go_on):
    def inside():
        with clock:
            time.sleep(LONG_S)  # culprit of inside
        later(arrive)

    def arrive():
        clock.after()
        later(inner.quit, milliseconds=200)

    def opens():
        later(begin, milliseconds=200)
        inner.run()
        go_on()

    def begin():
        clock.before()
        later(inside)

    inner = GLib.MainLoop()
    later(opens)
    yield


@own
def after_an_inner_loop(clock, go_on):
    def opens():
        later(closes, milliseconds=200)
        inner.run()
        with clock:
            time.sleep(LONG_S)  # culprit of opens
        later(then, clock, go_on)

    def closes():
        clock.before()
        inner.quit()

    inner = GLib.MainLoop()
    later(opens)
    yield


@own
def context_of_its_own(clock, go_on):
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
    elsewhere(work, partial(then, clock, go_on), [])
    yield


def all_kinds(names, truth):
    for name in names:
        clock = BlockClock(name)
        drive = OWN.get(name)
        if drive is not None:
            yield from drive(clock, driver.go_on)
        else:
            yield from by_timeout(blocks.KINDS[name][1], clock, driver.go_on)
        truth.append(clock.facts)
        gc.collect(0)
        driver.go_on()
        yield
    loop.quit()


if __name__ == "__main__":
    truth_file, blocks.FOLDER = Path(sys.argv[3]), Path(sys.argv[4])
    sys.path.append(sys.argv[4])
    blocks.HELPER.submit(int).result()  # to start a thread is to wait until it runs: not in the loop
    gc.disable()  # collections come when `collection` says so
    truth = []
    loop = GLib.MainLoop()
    driver = Driver(all_kinds(sys.argv[5:], truth))
    driver.go_on()
    loop.run()
    loopcanary.uninstall()
    truth_file.write_text(json.dumps(truth))
