"""Blocks a window of Tk's in the ways of tests/program/programs/blocks.py, and in some of its own.

window_blocks.py BLOCKS_FOLDER TRUTH_FILE FOLDER [KIND...]
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import tkinter as tk
import traceback
from functools import partial
from importlib import import_module
from pathlib import Path

sys.path.insert(0, sys.argv[1])
blocks = import_module("blocks")

from clock import BlockClock  # noqa: E402 - of that folder

LONG_S = blocks.LONG_S
OWN = {}


def own(block):
    OWN[block.__name__] = block
    return block


class Driver:
    """Runs a generator: where it yields, it waits until `go_on` is called."""

    def __init__(self, generator):
        self._generator = generator

    def go_on(self):
        root.after(1, self._step)

    def _step(self):
        next(self._generator, None)


def elsewhere(function, go_on, results):
    """On another thread, while the loop runs."""

    def check():
        if future.done():
            results.append(future.result())
            go_on()
        else:
            root.after(5, check)

    future = blocks.HELPER.submit(function)
    check()


def by_after(block, clock, go_on):
    def call():
        block(clock, *prepared)
        root.after(1, then, clock, go_on)

    make = getattr(block, "prepare", None)
    prepared = []
    if make is not None:
        elsewhere(make, go_on, prepared)
        yield
    go_on()
    yield
    clock.before()
    root.after(1, call)
    yield


def then(clock, go_on):
    """The first thing after the block."""
    clock.after()
    go_on()


# ---- commands and bindings ----------------------------------------------------------------------


@own
def binding(clock, go_on):
    def on_press(event):
        assert event.num == 1
        with clock:
            time.sleep(LONG_S)  # culprit of on_press
        root.after(1, then, clock, go_on)

    field = tk.Entry(root, name="field")
    field.pack()
    field.bind("<Button-1>", on_press)
    field.bind("<Map>", lambda _: go_on())
    yield
    clock.before()
    field.event_generate("<Button-1>", x=3, y=3, when="tail")
    yield
    field.destroy()


@own
def command(clock, go_on):
    def on_click(what):
        assert what == "the order"
        with clock:
            time.sleep(LONG_S)  # culprit of on_click
        root.after(1, then, clock, go_on)

    button = tk.Button(root, name="send", text="send", command=partial(on_click, "the order"))
    button.pack()
    go_on()
    yield
    clock.before()
    # As the class's bindings do in the end. By events of the mouse it is a click only if none of the server's
    # own comes between: one that says the pointer is elsewhere makes the button forget that it was pressed.
    root.tk.call("after", 1, f"{button} invoke")
    yield
    button.destroy()


@own
def when_idle(clock, go_on):
    def refresh():
        with clock:
            time.sleep(LONG_S)  # culprit of refresh
        root.after(1, then, clock, go_on)

    clock.before()
    root.after_idle(refresh)
    yield


@own
def trace(clock, go_on):
    def changed(*names):
        assert len(names) == 3
        with clock:
            time.sleep(LONG_S)  # culprit of changed

    def call():
        variable.set("new")
        root.after(1, then, clock, go_on)

    variable = tk.StringVar(root)
    variable.trace_add("write", changed)
    clock.before()
    root.after(1, call)
    yield


# ---- what Tk's own waits do ---------------------------------------------------------------------


@own
def after_that_sleeps(clock, go_on):
    def call():
        with clock:
            root.after(int(LONG_S * 1000))  # culprit of after_that_sleeps
        root.after(1, then, clock, go_on)

    clock.before()
    root.after(1, call)
    yield


@own
def file_handler(clock, go_on):
    """Tcl calls it with no wrapper of tkinter's around it."""

    def readable(file, mask):
        os.read(reading, 1)
        root.tk.deletefilehandler(reading)
        with clock:
            time.sleep(LONG_S)  # culprit of readable
        root.after(1, then, clock, go_on)

    reading, writing = os.pipe()
    root.tk.createfilehandler(reading, tk.READABLE, readable)
    go_on()
    yield
    clock.before()
    os.write(writing, b"x")
    yield
    os.close(reading)
    os.close(writing)


# ---- loops inside callbacks ---------------------------------------------------------------------


@own
def in_a_dialog(clock, go_on):
    """A modal dialog's own loop runs the block; the dialog stays for longer than it."""

    def inside():
        with clock:
            time.sleep(LONG_S)  # culprit of inside
        root.after(1, arrive)

    def arrive():
        clock.after()
        root.after(200, dialog.destroy)

    def opens():
        root.after(200, begin)
        root.wait_window(dialog)
        go_on()

    def begin():
        clock.before()
        root.after(1, inside)

    dialog = tk.Toplevel(root)
    root.after(1, opens)
    yield


@own
def after_a_dialog(clock, go_on):
    """What a command does when its dialog is closed is the command's."""

    def opens():
        root.after(200, closes)
        root.wait_window(dialog)
        with clock:
            time.sleep(LONG_S)  # culprit of opens
        root.after(1, then, clock, go_on)

    def closes():
        clock.before()
        dialog.destroy()

    dialog = tk.Toplevel(root)
    root.after(1, opens)
    yield


@own
def after_update(clock, go_on):
    def steps():
        for _ in range(10):
            time.sleep(0.02)
            root.update()
        clock.before()
        root.update()
        with clock:
            time.sleep(LONG_S)  # culprit of steps
        root.after(1, then, clock, go_on)

    root.after(1, steps)
    yield


@own
def burst(clock, go_on):
    def short():
        began = time.perf_counter_ns()
        while time.perf_counter_ns() - began < 500_000:
            pass
        longest[0] = max(longest[0], time.perf_counter_ns() - began)

    longest = [0]
    for _ in range(600):
        root.after(1, short)
    root.after(1, then, clock, go_on)
    time.sleep(0.005)  # all of them are due: Tk calls them in one turn
    clock.before()
    yield
    clock.facts["longest_callback_ns"] = longest[0]


# ---- all of them --------------------------------------------------------------------------------


def all_kinds(names, truth):
    for name in names:
        clock = BlockClock(name)
        drive = OWN.get(name)
        if drive is not None:
            yield from drive(clock, driver.go_on)
        else:
            yield from by_after(blocks.KINDS[name][1], clock, driver.go_on)
        truth.append(clock.facts)
        gc.collect(0)
        driver.go_on()
        yield
    root.destroy()


def fail(*error):
    """Nobody would go on."""
    traceback.print_exception(*error)
    os._exit(1)


if __name__ == "__main__":
    truth_file, blocks.FOLDER = Path(sys.argv[2]), Path(sys.argv[3])
    sys.path.append(sys.argv[3])
    blocks.HELPER.submit(int).result()  # to start a thread is to wait until it runs: not in the loop
    gc.disable()  # collections come when `collection` says so
    truth = []
    root = tk.Tk()
    root.report_callback_exception = fail
    driver = Driver(all_kinds(sys.argv[4:], truth))
    driver.go_on()
    root.mainloop()
    truth_file.write_text(json.dumps(truth))
