"""The label in windows: there where it is asked for, gone afterwards, nobody's frame and nobody's fault."""

from __future__ import annotations

import pytest

from .needing import BINDINGS, needs

pytestmark = [pytest.mark.native, pytest.mark.parametrize("binding", BINDINGS)]

HEAD = """
import json, tempfile, time
import loopcanary
loopcanary.install(store=tempfile.mkdtemp(), console=False, threshold="200ms", overlay=True)
shown = []
loopcanary.on_frame(shown.append)
application = QtWidgets.QApplication([])
application.setStyleSheet("QWidget { background: transparent }")
window = QtWidgets.QMainWindow()
window.setWindowTitle("orders")
window.resize(400, 300)
window.show()

def labels(of):
    return [child for child in of.children() if child.objectName() == "loopcanary overlay"]

def once(condition, then):
    if condition():
        then()
    else:
        QtCore.QTimer.singleShot(20, lambda: once(condition, then))
"""


def test_it_tells_of_the_last_stall_in_the_window_in_front(run_window, binding):
    needs(binding)
    text, left_behind, is_transparent = run_window(
        binding,
        HEAD
        + """
def block():
    # Again and again: a busy machine brings stalls of its own, and the last one is shown.
    if any("block" in label._text for label in labels(window)):
        told()
    else:
        time.sleep(0.3)
        QtCore.QTimer.singleShot(1_500, block)

def told():
    (label,) = labels(window)
    answers.append(label._text)
    dialog = QtWidgets.QDialog(window)
    once(lambda: labels(dialog), lambda: moved(dialog))
    dialog.exec()

def moved(dialog):
    answers.append(len(labels(window)))
    (label,) = labels(dialog)
    answers.append(label.testAttribute(QtCore.Qt.WidgetAttribute.WA_TransparentForMouseEvents))
    dialog.accept()
    QtCore.QTimer.singleShot(0, application.quit)

answers = []
once(lambda: labels(window), block)
application.exec()
loopcanary.uninstall()
print(json.dumps(answers))
""",
    )
    assert text.split("\n")[1].startswith("stall ")
    assert "block <string>:" in text
    assert left_behind == 0
    assert is_transparent


def test_it_paints_nobody_s_frame_and_goes_with_the_watching(run_window, binding):
    needs(binding)
    before, after, painted, left = run_window(
        binding,
        HEAD
        + """
def begin():
    answers.append(len(shown))
    once(changed, over)

def changed():
    # What the window shows changes nothing; the label does, by itself.
    (label,) = labels(window)
    label.update()
    changes.append(1)
    return len(changes) > 20

def over():
    answers.append(len(shown))
    answers.append(len(changes))
    loopcanary.uninstall()
    answers.append(len(labels(window)))
    application.quit()

answers, changes = [], []
once(lambda: labels(window), lambda: QtCore.QTimer.singleShot(600, begin))
application.exec()
print(json.dumps(answers))
""",
    )
    assert painted > 20
    assert after == before
    assert left == 0


def test_a_window_that_the_program_lets_go_of_goes(run_window, binding):
    needs(binding)
    left = run_window(
        binding,
        HEAD
        + """
import gc, weakref

def let_go():
    global window
    window = None
    gc.collect()
    print(json.dumps([seen() is not None, len(application.topLevelWidgets())]))
    application.quit()

seen = weakref.ref(window)
once(lambda: labels(window), let_go)
application.exec()
""",
    )
    assert left == [False, 0]
