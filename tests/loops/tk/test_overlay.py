"""The label in windows: there where it is asked for, gone afterwards, nobody's frame and nobody's fault."""

from __future__ import annotations

import pytest

from .test_frames import run

pytestmark = pytest.mark.native

LABELS = """
def labels(window):
    return [child for child in window.winfo_children() if "loopcanary" in str(child)]

def once(condition, then):
    if condition():
        then()
    else:
        root.after(20, once, condition, then)
"""


def test_it_tells_of_the_last_stall_in_the_window_in_front():
    texts = run(
        LABELS
        + """
texts = []
def block():
    # Again and again: a busy machine brings stalls of its own, and the last one is shown.
    if any("block" in label["text"] for label in labels(root)):
        told()
    else:
        time.sleep(0.3)
        root.after(1_500, block)

def told():
    texts.append(labels(root)[0]["text"])
    dialog = tk.Toplevel(root)
    dialog.title("Open a file")
    dialog.wait_visibility()
    dialog.focus_force()
    once(lambda: labels(dialog), lambda: moved(dialog))

def moved(dialog):
    texts.append(len(labels(root)))
    dialog.destroy()
    root.destroy()

root.focus_force()
once(lambda: labels(root), block)
root.mainloop()
loopcanary.uninstall()
print(json.dumps(texts))
""",
        threshold="200ms",
        LOOPCANARY_OVERLAY="1",
    )
    text, left_behind = texts
    assert text.split("\n")[1].startswith("stall ")
    assert "block <string>:" in text
    assert left_behind == 0


def test_it_draws_nobody_s_frame_and_goes_with_the_watching():
    before, after, left = run(
        LABELS
        + """
told = []
def begin():
    global text
    text = labels(root)[0]["text"]
    told.append(len(shown))
    once(changed, over)

def changed():
    # What the window shows changes nothing; the label does, by itself.
    label = labels(root)[0]
    label.configure(text=label["text"] + ".")
    changes.append(1)
    return len(changes) > 20

def over():
    told.append(len(shown))
    loopcanary.uninstall()
    told.append(len(labels(root)))
    root.destroy()

changes = []
once(lambda: labels(root), lambda: root.after(600, begin))
root.mainloop()
print(json.dumps(told))
""",
        LOOPCANARY_OVERLAY="1",
    )
    assert after == before
    assert left == 0


def test_the_pointer_passes():
    corners = run(
        LABELS
        + """
def enter():
    label = labels(root)[0]
    corners = [label.place_info()["anchor"]]
    label.event_generate("<Enter>")
    corners.append(label.place_info()["anchor"])
    print(json.dumps(corners))
    root.destroy()

once(lambda: labels(root), enter)
root.mainloop()
""",
        LOOPCANARY_OVERLAY="1",
    )
    assert corners == ["ne", "se"]


def test_it_is_off_unless_asked_for():
    (count,) = run(
        LABELS
        + """
def end():
    print(json.dumps([len(labels(root))]))
    root.destroy()
root.after(1200, end)
root.mainloop()
"""
    )
    assert count == 0


def test_windows_of_another_thread_are_freed_there():
    texts = run(
        LABELS
        + """
import gc, threading

def show(texts):
    global root
    root = tk.Tk()
    once(lambda: labels(root), lambda: (texts.append(labels(root)[0].winfo_class()), root.destroy()))
    root.mainloop()
    root = None
    gc.collect()

root.destroy()
root = canvas = None
texts = []
thread = threading.Thread(target=show, args=(texts,))
thread.start()
thread.join()
left = [one for one in gc.get_objects() if isinstance(one, tk.Tk)]
loopcanary.uninstall()
print(json.dumps([texts, len(left)]))
""",
        LOOPCANARY_OVERLAY="1",
    )
    assert texts == [["Label"], 0]


def test_the_next_window_of_the_thread_has_one_too():
    (count,) = run(
        LABELS
        + """
def draw():
    canvas.move(ball, 1, 1)
    root.after(20, draw)

once(lambda: labels(root), root.destroy)
root.mainloop()
first, root = root, tk.Tk()
canvas = tk.Canvas(root)
canvas.pack()
ball = canvas.create_oval(0, 0, 10, 10)
draw()
once(lambda: labels(root), lambda: (print(json.dumps([len(labels(root))])), root.destroy()))
root.mainloop()
""",
        LOOPCANARY_OVERLAY="1",
    )
    assert count == 1
