"""What windows show, how late their input is, timers that never let the loop wait."""

from __future__ import annotations

import pytest
from tests.program.watching import PROGRAMS

from .needing import BINDINGS, needs

pytestmark = [pytest.mark.native, pytest.mark.parametrize("binding", BINDINGS)]

HEAD = """
import json, tempfile, time
import loopcanary
canary = loopcanary.install(store=tempfile.mkdtemp(), console=False, threshold="1h")
application = QtWidgets.QApplication([])

class Canvas(QtWidgets.QWidget):
    painted = 0
    def paintEvent(self, event):
        self.painted += 1

canvas = Canvas()
canvas.setWindowTitle("the canvas")
canvas.show()

def own(figures):
    found = [one for one in loopcanary.statistics()[figures] if one["loop"] == "qt"]
    print(json.dumps(found))
"""


def test_frames_that_an_animation_drops(run_window, binding):
    needs(binding)
    told = run_window(
        binding,
        HEAD
        + """
has_slept = False
def tick():
    global has_slept
    canvas.update()
    if canvas.painted >= 20 and not has_slept:
        has_slept = True
        time.sleep(0.3)
    if canvas.painted >= 60:
        application.quit()

ticking = QtCore.QTimer()
ticking.timeout.connect(tick)
ticking.start(16)
application.exec()
own("frames")
""",
    )
    (scene,) = [one for one in told if one["scene"] == "the canvas"]
    assert scene["frames"] >= 55
    # 300 ms are 18 frames of a 60 Hz screen; a busy machine drops others.
    assert scene["dropped"] >= 17
    assert scene["worst_ms"] >= 300


def test_a_window_that_is_drawn_now_and_then_drops_nothing(run_window, binding):
    needs(binding)
    told = run_window(
        binding,
        HEAD
        + """
def tick():
    canvas.update()
    if canvas.painted >= 5:
        application.quit()
    else:
        QtCore.QTimer.singleShot(300, tick)

QtCore.QTimer.singleShot(300, tick)
began = time.monotonic()
application.exec()
found = [one for one in loopcanary.statistics()["frames"] if one["scene"] == "the canvas"]
print(json.dumps([found, 1000 * (time.monotonic() - began)]))
""",
    )
    (scene,), took_ms = told
    assert scene["frames"] >= 4
    # Five pauses of 300 ms are no frames. What a busy machine adds may be.
    assert scene["frame_ms"] < took_ms - 1_000


def test_a_window_that_answers_late(run_window, binding):
    """A pause, then a slot that takes long and changes what the window shows."""
    needs(binding)
    told = run_window(
        binding,
        HEAD
        + """
def slow():
    time.sleep(0.8)
    canvas.update()
    QtCore.QTimer.singleShot(100, application.quit)

QtCore.QTimer.singleShot(300, slow)
application.exec()
own("frames")
""",
    )
    (scene,) = [one for one in told if one["scene"] == "the canvas"]
    assert scene["worst_ms"] >= 800
    assert scene["frozen"] >= 1  # a busy machine may freeze the first one, too


def test_input_is_as_late_as_its_handling_ends(run_window, binding):
    needs(binding)
    (told,) = run_window(
        binding,
        HEAD
        + f"""
from {binding} import QtCore, QtGui
class Field(QtWidgets.QLineEdit):
    def keyPressEvent(self, event):
        time.sleep(0.25)
        super().keyPressEvent(event)

field = Field()
field.show()
none = QtCore.Qt.KeyboardModifier(0)
events = [QtGui.QKeyEvent(QtCore.QEvent.Type.KeyPress, QtCore.Qt.Key.Key_A, none, "a") for _ in range(2)]
def post():
    for event in events:
        if hasattr(event, "setTimestamp"):
            event.setTimestamp(time.monotonic_ns() // 1_000_000)
        QtCore.QCoreApplication.postEvent(field, event)
    QtCore.QTimer.singleShot(100, application.quit)
QtCore.QTimer.singleShot(50, post)
application.exec()
own("input")
""".replace(f"from {binding} import QtCore, QtGui", f"import {binding}.QtGui as QtGui"),
    )
    assert told["worst"] == "QLineEdit: KeyPress"
    assert told["events"] == 2
    assert told["p50_ms"] >= 250
    if binding == "PySide6":  # PyQt6 sets no time stamps: its events came when their handling began
        assert told["worst_ms"] >= 490
        assert told["queued_ms"] >= 240


def test_zero_timers_spin_and_are_named_by_where_they_are_kept(run_window, binding):
    needs(binding)
    told = run_window(
        binding,
        HEAD
        + """
class Board(QtWidgets.QLabel):
    def __init__(self):
        super().__init__()
        self.poll = QtCore.QTimer(self)
board = Board()
board.poll.timeout.connect(lambda: None)
spinning = QtCore.QTimer()
spinning.timeout.connect(lambda: None)
class Hidden:
    timer = QtCore.QTimer()
Hidden.timer.timeout.connect(lambda: None)
timers = [board.poll, spinning, Hidden.timer]
timers[0].start(0)
def look():
    # For as long as it takes: where others have the core, nobody can say that it spins.
    spun = [one["spun_ms"] for one in loopcanary.statistics()["idle"] if one["loop"] == "qt"]
    if len(spun) == 4 - len(timers) and min(spun) >= 1_000:
        timers.pop(0).stop()
        timers[0].start(0) if timers else application.quit()
slower = QtCore.QTimer()
slower.timeout.connect(look)
slower.start(2_500)
application.exec()
own("idle")
""",
    )
    assert sorted(work["name"] for work in told) == ["Board.poll: Timer", "QTimer: Timer", "spinning: Timer"]
    assert min(work["spun_ms"] for work in told) >= 1_000


def test_a_timer_that_waits_does_not(run_window, binding):
    needs(binding)
    told = run_window(
        binding,
        HEAD
        + """
ticking = QtCore.QTimer()
ticking.timeout.connect(lambda: None)
ticking.start(2)
QtCore.QTimer.singleShot(1_500, application.quit)
application.exec()
own("idle")
""",
    )
    assert told == []


FRONT = (
    f"""
import sys
sys.path.insert(0, {str(PROGRAMS)!r})
from blocking import until_sampled
"""
    """
import json, tempfile, time
import loopcanary
seen = []
@loopcanary.on_issue
def see(issue):
    if issue.kind.value == "stall":
        seen.append(issue)
    return issue
loopcanary.install(store=tempfile.mkdtemp(), console=False, threshold="80ms")
application = QtWidgets.QApplication([])
window = QtWidgets.QMainWindow()
window.setWindowTitle("orders.txt[*] - Editor")
window.show()
after = QtCore.QTimer.singleShot

def sleeps():
    for seconds in until_sampled(0.15):
        time.sleep(seconds)

def block(then, title=None):
    sleeps()
    if title is not None:
        window.setWindowTitle(title)
    after(100, then)

def over():
    loopcanary.uninstall()
    print(json.dumps([stall.scene for stall in sorted(seen, key=lambda one: one.began_wall_ns)]))
"""
)


def test_stalls_have_the_title_of_the_window_in_front(run_window, binding):
    needs(binding)
    scenes = run_window(
        binding,
        FRONT
        + """
def first():
    block(renamed, "another name")

def renamed():
    block(explicit)

def explicit(left=5):
    # Again and again: the scene is asked for early in a callback, where a busy machine may stop it.
    with loopcanary.scene("said by the program"):
        sleeps()
    after(100, (lambda: explicit(left - 1)) if left else opens)

def opens():
    dialog = QtWidgets.QDialog(window)
    dialog.setWindowTitle("Open a file")
    after(100, lambda: block(dialog.accept))
    dialog.exec()
    after(100, last)

def last():
    block(application.quit)

after(200, first)
application.exec()
over()
""",
    )
    expected = ["orders.txt - Editor", "another name", "said by the program", "Open a file", "another name"]
    # In this order; a busy machine may bring stalls of its own anywhere.
    in_order = iter(scenes)
    assert all(scene in in_order for scene in expected), scenes
