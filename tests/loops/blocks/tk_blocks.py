"""Blocks a window of Tk's."""

from __future__ import annotations

import os
import time
import tkinter as tk
from functools import partial

from driving import LONG_S, drive, fail, own


def later(function, milliseconds=1):
    root.after(milliseconds, function)


# ---- commands and bindings ----------------------------------------------------------------------


@own
def binding(clock):
    def on_press(event):
        assert event.num == 1
        with clock:
            time.sleep(LONG_S)  # culprit of binding
        drive.then(clock)

    field = tk.Entry(root, name="field")
    field.pack()
    field.bind("<Button-1>", on_press)
    field.bind("<Map>", lambda _: drive.go_on())
    yield
    clock.before()
    field.event_generate("<Button-1>", x=3, y=3, when="tail")
    yield
    field.destroy()


@own
def command(clock):
    def on_click(what):
        assert what == "the order"
        with clock:
            time.sleep(LONG_S)  # culprit of command
        drive.then(clock)

    button = tk.Button(root, name="send", text="send", command=partial(on_click, "the order"))
    button.pack()
    drive.go_on()
    yield
    clock.before()
    # As the class's bindings do in the end. By events of the mouse it is a click only if none of the server's
    # own comes between: one that says the pointer is elsewhere makes the button forget that it was pressed.
    root.tk.call("after", 1, f"{button} invoke")
    yield
    button.destroy()


@own
def when_idle(clock):
    def refresh():
        with clock:
            time.sleep(LONG_S)  # culprit of when_idle
        drive.then(clock)

    clock.before()
    root.after_idle(refresh)
    yield


@own
def trace(clock):
    def changed(*names):
        assert len(names) == 3
        with clock:
            time.sleep(LONG_S)  # culprit of trace

    def call():
        variable.set("new")
        drive.then(clock)

    variable = tk.StringVar(root)
    variable.trace_add("write", changed)
    clock.before()
    root.after(1, call)
    yield


# ---- what Tk's own waits do ---------------------------------------------------------------------


@own
def after_that_sleeps(clock):
    def call():
        with clock:
            root.after(int(LONG_S * 1000))  # culprit of after_that_sleeps
        drive.then(clock)

    clock.before()
    root.after(1, call)
    yield


@own
def file_handler(clock):
    """Tcl calls it with no wrapper of tkinter's around it."""

    def readable(file, mask):
        os.read(reading, 1)
        root.tk.deletefilehandler(reading)
        with clock:
            time.sleep(LONG_S)  # culprit of file_handler
        drive.then(clock)

    reading, writing = os.pipe()
    root.tk.createfilehandler(reading, tk.READABLE, readable)
    drive.go_on()
    yield
    clock.before()
    os.write(writing, b"x")
    yield
    os.close(reading)
    os.close(writing)


@own
def after_update(clock):
    def steps():
        for _ in range(10):
            time.sleep(0.02)
            root.update()
        clock.before()
        root.update()
        with clock:
            time.sleep(LONG_S)  # culprit of after_update
        drive.then(clock)

    root.after(1, steps)
    yield


class Inner:
    """A modal dialog."""

    def __init__(self):
        self._dialog = tk.Toplevel(root)
        self.end = self._dialog.destroy

    def run(self):
        root.wait_window(self._dialog)


if __name__ == "__main__":
    root = tk.Tk()
    root.report_callback_exception = fail
    drive.later, drive.inner = later, Inner
    drive.main(root.mainloop, root.destroy)
