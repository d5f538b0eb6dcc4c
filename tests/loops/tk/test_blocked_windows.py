"""Windows of Tk that take no input or are not drawn, though the loop is healthy."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.loops.window_desk import HEAD

WINDOW = """
tracer.start()
import tkinter
root = tkinter.Tk()
root.update()

def until(is_done):
    def look():
        if is_done():
            root.quit()
        else:
            root.after(5, look)
    look()
    root.mainloop()
"""
LEFT_ON = {
    "a grab of a window that is hidden": """
def ask():
    dialog = tkinter.Toplevel(root, name="ask")
    dialog.grab_set()
    return dialog

def close():
    ask().withdraw()

root.after(1, close)
until(lambda: is_told("tk-grab"))
say()
""",
    "a grab after a restart of the tracer": """
def ask():
    dialog = tkinter.Toplevel(root, name="ask")
    dialog.grab_set()
    return dialog

tracer.stop()
ask().destroy()
tracer.start()
root.after(1, lambda: ask().withdraw())
until(lambda: is_told("tk-grab"))
say(hooks=len(tracer._hooks._patches._laid))
""",
    "after without a pause": """
drawn = []
def poll():
    root.after(0, poll)
    if is_told("after-storm"):
        root.quit()

poll()
root.after_idle(drawn.append, 1)
root.mainloop()
say(drawn=drawn)
""",
}
TOLD = {
    "a grab of a window that is hidden": {"told": [["tk-grab", "Toplevel .ask", "ask"]]},
    "a grab after a restart of the tracer": {"told": [["tk-grab", "Toplevel .ask", "ask"]], "hooks": 4},
    "after without a pause": {"told": [["after-storm", "Tk", "poll"]], "drawn": []},
}
MEANT = """
dialog = tkinter.Toplevel(root)
dialog.wait_visibility()
dialog.grab_set()  # it is seen, and takes the input
drawn = []

def animate():
    drawn.append(1)
    root.update_idletasks()
    root.after(0, animate)

animate()
looks = []
looked = tracer._watches[-1].look
def count(*args):
    looks.append(1)
    return looked(*args)
tracer._watches[-1].look = count
until(lambda: len(looks) > 8)
say(animated=len(drawn) > 8)
"""
UNNOTICED = """
import inspect, tkinter
names = ("grab_set", "grab_release", "after")
before = {name: vars(tkinter.Misc)[name] for name in names}
signs = {name: (str(inspect.signature(one)), one.__doc__, one.__name__) for name, one in before.items()}
tracer.start()
same = all(
    signs[name] == (str(inspect.signature(one)), one.__doc__, one.__name__) and one is not before[name]
    for name in names
    for one in [getattr(tkinter.Misc, name)]
)
root = tkinter.Tk()
try:
    root.after(1, print, "x").upper().nothing
except AttributeError as error:
    raised = str(error)
try:
    root.after("soon", print)
except tkinter.TclError as error:
    refused = str(error)
pending = len(root.tk.splitlist(root.tk.call("after", "info")))
tracer.stop()
say(
    same=same, raised=raised, refused=refused, pending=pending,
    restored=all(vars(tkinter.Misc)[name] is before[name] for name in names),
)
"""


def run(source: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + source], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("story", LEFT_ON)
def test_what_is_left_on_is_reported_with_its_line(story):
    assert run(WINDOW + LEFT_ON[story]) == {"errors": [], **TOLD[story]}


def test_what_may_be_meant_is_not_reported():
    assert run(WINDOW + MEANT) == {"told": [], "errors": [], "animated": True}


def test_the_program_notices_nothing():
    found = run(UNNOTICED)
    assert found == {
        "told": [],
        "errors": [],
        "same": True,
        "raised": "'str' object has no attribute 'nothing'",
        "refused": 'bad argument "soon": must be cancel, idle, info, or an integer',
        "pending": 1,
        "restored": True,
    }
