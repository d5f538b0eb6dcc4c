"""A window of Qt Quick's whose QML calls Python: quick_window.py BLOCKS_FOLDER BINDING TRUTH_FILE KIND...

KIND is a way to block, or `quiet`: a window at rest, one that changes now and then, another that comes and
goes, an animation.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path

import loopcanary

sys.path.insert(0, sys.argv[1])
from blocking import until_sampled  # of that folder
from clock import BlockClock

QtCore = import_module(f"{sys.argv[2]}.QtCore")
QtGui = import_module(f"{sys.argv[2]}.QtGui")
QtQml = import_module(f"{sys.argv[2]}.QtQml")
import_module(f"{sys.argv[2]}.QtQuick")  # the binding's own class for windows of QML's

Signal = getattr(QtCore, "Signal", None) or QtCore.pyqtSignal
Slot = getattr(QtCore, "Slot", None) or QtCore.pyqtSlot
Property = getattr(QtCore, "Property", None) or QtCore.pyqtProperty
LONG_S = 0.25
REST_MS = 700
ANIMATED_FRAMES = 90

QML = b"""
import QtQuick
import QtQuick.Window
import Shop 1.0

Window {
    visible: true; width: 160; height: 80; title: "the shop"
    property alias animated: animation.running
    property alias changing: changes.running
    property alias polled: poll.running
    property alias second: other.active
    property bool ticking: false
    onTickingChanged: ticker.begin()
    MouseArea { anchors.fill: parent; onClicked: shop.order() }
    Timer { id: poll; interval: 1; onTriggered: shop.poll() }
    Text { text: shop.total }
    Ticker { id: ticker }
    Rectangle {
        id: mover
        width: 20; height: 20; y: 40; color: "teal"
        NumberAnimation on x {
            id: animation; running: false; from: 0; to: 140; duration: 400; loops: Animation.Infinite
        }
    }
    Timer {
        id: changes; interval: 200; repeat: true
        onTriggered: mover.color = mover.color == "#008080" ? "red" : "teal"
    }
    Loader { id: other; active: false; sourceComponent: Window { visible: true; title: "another" } }
}
"""


def later(function, milliseconds=0):
    QtCore.QTimer.singleShot(milliseconds, function)


def window():
    """QML's own. Nobody holds what the binding makes of it."""
    return engine.rootObjects()[0]


class Ticker(QtCore.QObject):
    """What QML makes an object of."""

    @Slot()
    def begin(self):
        self.startTimer(0)

    def timerEvent(self, event):  # noqa: N802 - Qt's name
        self.killTimer(event.timerId())
        with shop.clock:
            for seconds in until_sampled(LONG_S):
                time.sleep(seconds)  # culprit of timerEvent
        later(shop.arrive)


class Shop(QtCore.QObject):
    """What QML calls, and what makes it call."""

    total_changed = Signal()

    def __init__(self):
        super().__init__()
        self.clock = None
        self.is_slow = False
        self.swaps = 0
        self._reached = None

    def go_on(self):
        later(self._step, 1)

    def _step(self):
        next(driver, None)

    def arrive(self):
        """The first thing after the block."""
        self.clock.after()
        self.go_on()

    # ---- called by QML --------------------------------------------------------------------------

    @Slot()
    def order(self):
        with self.clock:
            for seconds in until_sampled(LONG_S):
                time.sleep(seconds)  # culprit of order
        later(self.arrive)

    @Slot()
    def poll(self):
        with self.clock:
            for seconds in until_sampled(LONG_S):
                time.sleep(seconds)  # culprit of poll
        later(self.arrive)

    def _total(self):
        if self.is_slow:
            self.is_slow = False
            with self.clock:
                for seconds in until_sampled(LONG_S):
                    time.sleep(seconds)  # culprit of _total
            later(self.arrive)
        return self.swaps

    total = Property(int, fget=_total, notify=total_changed)

    # ---- called by Qt ---------------------------------------------------------------------------

    @Slot()
    def swapped(self):
        self.swaps += 1
        if self._reached is not None and self.swaps >= self._reached:
            self._reached = None
            self.go_on()

    def after_frames(self, count):
        """Goes on when so many more frames were shown."""
        self._reached = self.swaps + count

    def freeze(self):
        with self.clock:
            for seconds in until_sampled(LONG_S):
                time.sleep(seconds)  # culprit of freeze
        later(self.arrive)


# ---- ways to block: generators that yield where they wait for `go_on` ---------------------------


def click():
    where, left = QtCore.QPointF(3, 3), QtCore.Qt.MouseButton.LeftButton
    none, no_key = QtCore.Qt.MouseButton.NoButton, QtCore.Qt.KeyboardModifier(0)
    press = QtGui.QMouseEvent(QtCore.QEvent.Type.MouseButtonPress, where, where, left, left, no_key)
    release = QtGui.QMouseEvent(QtCore.QEvent.Type.MouseButtonRelease, where, where, left, none, no_key)
    shop.clock.before()
    for event in (press, release):
        QtCore.QCoreApplication.postEvent(window(), event)
    yield


def timer_of_qml():
    shop.clock.before()
    window().setProperty("polled", True)
    yield


def binding():
    shop.is_slow = True
    shop.clock.before()
    later(shop.total_changed.emit)
    yield


def made_by_qml():
    shop.clock.before()
    window().setProperty("ticking", True)
    yield


def animation():
    window().setProperty("animated", True)
    shop.after_frames(20)
    yield
    shop.clock.before()
    later(shop.freeze)
    yield
    shop.after_frames(5)
    yield
    window().setProperty("animated", False)


# ---- nothing blocks -----------------------------------------------------------------------------


def quiet():
    later(shop.go_on, REST_MS)
    yield
    for name in ("changing", "second"):
        window().setProperty(name, True)
        later(shop.go_on, REST_MS)
        yield
        window().setProperty(name, False)
    window().setProperty("animated", True)
    before = shop.swaps
    shop.after_frames(ANIMATED_FRAMES)
    yield
    shop.clock.facts["swaps"] = shop.swaps - before
    shop.clock.after()


KINDS = {each.__name__: each for each in (click, timer_of_qml, binding, made_by_qml, animation, quiet)}


def all_kinds(names):
    # The first frame may have been shown before anybody could hear of it.
    window().setProperty("animated", True)
    shop.after_frames(2)
    yield
    window().setProperty("animated", False)
    for name in names:
        shop.clock = BlockClock(name)
        shop.clock.before()
        yield from KINDS[name]()
        truth.append(shop.clock.facts)
        shop.go_on()
        yield
    application.quit()


def fail(*error):
    sys.__excepthook__(*error)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.excepthook = fail
    gc.disable()
    truth = []
    application = QtGui.QGuiApplication(sys.argv[:1])
    QtQml.qmlRegisterType(Ticker, "Shop", 1, 0, "Ticker")
    shop = Shop()
    engine = QtQml.QQmlApplicationEngine()
    engine.rootContext().setContextProperty("shop", shop)
    engine.loadData(QML)
    window().frameSwapped.connect(shop.swapped)
    driver = all_kinds(sys.argv[4:])
    shop.go_on()
    application.exec()
    Path(sys.argv[3]).write_text(json.dumps(truth))
    # Not by taking down the window: on a busy machine one in six runs waited for ever for the thread of
    # Qt's software renderer, with loopcanary and without.
    loopcanary.uninstall()
    os._exit(0)
