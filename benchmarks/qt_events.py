"""What Qt's events cost with loopcanary and without: 10,000 posted events a second in a window that is open.

The figure is CPU time of the whole process, watchdog included: on a machine that others use too, wall time
would measure them. Posted are events of a kind that Qt handles by itself, so that what is added is not small
beside the program's own Python.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from harness import table
from harness.children import alternate, answer_all, pair, start_watching
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QLabel

EVENTS_A_SECOND = 10_000
TICK_MS = 10
SECONDS = table.sized(1.0, 0.1)
BURST = table.sized(50_000, 1_000)
ROUNDS = table.sized(24, 2)
PROCESSES = table.sized(3, 1)


def paced(_: QObject, receiver: QObject) -> float:
    """CPU time of a second with so many events, in shares of one core."""
    loop = QEventLoop()
    ticking = QTimer()
    ticking.setTimerType(Qt.TimerType.PreciseTimer)
    ends = time.monotonic() + SECONDS

    def tick() -> None:
        for _ in range(EVENTS_A_SECOND * TICK_MS // 1_000):
            QCoreApplication.postEvent(receiver, QEvent(QEvent.Type.User))
        if time.monotonic() >= ends:
            loop.quit()

    ticking.timeout.connect(tick)
    ticking.start(TICK_MS)
    begin = time.process_time()
    loop.exec()
    return (time.process_time() - begin) / SECONDS


def burst(_: QObject, receiver: QObject) -> float:
    """Nanoseconds of CPU that one event takes, when many are posted at once; without the posting."""
    for _ in range(BURST):
        QCoreApplication.postEvent(receiver, QEvent(QEvent.Type.User))
    begin = time.process_time_ns()
    QCoreApplication.processEvents()
    return (time.process_time_ns() - begin) / BURST


def turns(_: QObject, __: QObject) -> float:
    """Nanoseconds of CPU that one turn with one timer's event takes."""
    loop = QEventLoop()
    spinning = QTimer()
    left = BURST // 5

    def tick() -> None:
        nonlocal left
        left -= 1
        if not left:
            loop.quit()

    spinning.timeout.connect(tick)
    spinning.start(0)
    begin = time.process_time_ns()
    loop.exec()
    return (time.process_time_ns() - begin) / (BURST // 5)


WORK: dict[str, Callable[[QObject, QObject], float]] = {"paced": paced, "burst": burst, "turns": turns}


def child(role: str) -> None:
    """Answers with what one round took."""
    start_watching()
    application = QApplication([])
    label = QLabel("a window")
    label.show()
    receiver = QObject()
    work = WORK[role]
    answer_all(lambda _question: work(application, receiver))


def measure() -> None:
    """Prints one row for each kind of work."""
    for role, budget in (("paced", 1.0), ("burst", None), ("turns", None)):
        figures: list[tuple[float, float]] = []
        for _ in range(PROCESSES):
            with pair(role) as (watched, plain):
                alternate(watched.ask, plain.ask, 2)
                figures += alternate(watched.ask, plain.ask, ROUNDS // PROCESSES)
        more = statistics.median(watched - plain for watched, plain in figures)
        without = statistics.median(plain for _, plain in figures)
        if budget is not None:
            what = f"{EVENTS_A_SECOND:,} events/s, more CPU of one core"
            table.at_most(what, 100 * more, budget, unit="%", note=f"{100 * without:.1f} % without")
        else:
            table.told(f"{role}, more CPU per event", f"{more:.0f} ns", note=f"{without:.0f} ns without")


if __name__ == "__main__":
    table.run(measure, child)
