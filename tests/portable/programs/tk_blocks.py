"""Blocks a window of Tk's under the portable engine, in commands and around a loop inside of one."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import tkinter as tk
from functools import partial

from waiting import blocks

root = tk.Tk()
steps = []
facts = {}


class App:
    def poll(self):
        blocks()
        next_step()

    def on_click(self, what):
        assert what == "the order"
        blocks()
        next_step()


def next_step():
    if steps:
        root.after(1, steps.pop(0))


def press():
    root.tk.call("after", 1, f"{button} invoke")


def generate():
    field.event_generate("<Button-1>", x=3, y=3, when="tail")


def on_press(event):
    assert event.num == 1
    blocks()
    next_step()


def opens():
    window = tk.Toplevel(root)
    root.after(1, partial(inside, window))
    began = time.monotonic()
    root.wait_window(window)
    facts["open_ms"] = (time.monotonic() - began) * 1000
    blocks()
    next_step()


def inside(window):
    blocks()
    root.after(200, window.destroy)


def idle():
    root.after_idle(refresh)


def refresh():
    blocks()
    next_step()


async def main():
    await asyncio.sleep(0.15)
    blocks()


def runs_asyncio():
    asyncio.run(main())
    next_step()


def fails():
    next_step()
    raise ValueError("the program's own")


def report(kind, error, traceback):
    assert kind is ValueError
    # As without us: the first frame is tkinter's own.
    facts["is_tkinters"] = traceback.tb_frame.f_code.co_filename == tk.__file__


app = App()
root.report_callback_exception = report
button = tk.Button(root, name="send", command=partial(app.on_click, "the order"))
button.pack()
field = tk.Entry(root, name="field")
field.pack()
field.bind("<Button-1>", on_press)
field.bind("<Map>", lambda _: next_step())
steps += [app.poll, press, generate, opens, idle, runs_asyncio, fails, root.quit]
root.mainloop()
time.sleep(0.15)  # after the end of the loop nobody waits for it
root.destroy()
if "uninstalled" in sys.argv:
    import loopcanary

    loopcanary.uninstall()
    own = tk.Misc.mainloop, tk.Misc.update, tk.Misc.after_idle, tk.CallWrapper.__call__, tk.Tk.destroy
    facts["is_own"] = all(function.__code__.co_filename == tk.__file__ for function in own)
sys.stdout.write(json.dumps(facts))
