"""A window of pages: one has a table of measurements, and one goes from it and back."""

from __future__ import annotations

import sys
import time

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QLabel, QStackedWidget, QTableView
from qfluentwidgets import TableView

ROWS = 600
COLUMNS = ("time", "sensor", "value", "remark")


class Measurements(QAbstractTableModel):
    def __init__(self) -> None:
        super().__init__()
        self.rows = [
            (f"12:{number % 60:02}", f"S{number % 7}", f"{number * 0.37:.2f} mV", f"run {number // 10}")
            for number in range(ROWS)
        ]

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:
        return len(self.rows)

    def columnCount(self, parent: QModelIndex = QModelIndex()) -> int:
        return len(COLUMNS)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if role == Qt.ItemDataRole.DisplayRole:
            return self.rows[index.row()][index.column()]
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int) -> str | None:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return COLUMNS[section]
        return None


class Heartbeat(QObject):
    """The spinner of the window: it should turn all the time."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[float] = []
        self.last = time.perf_counter()
        self.timer = QTimer(self)
        self.timer.setTimerType(Qt.TimerType.PreciseTimer)
        self.timer.timeout.connect(self.beat)

    def start(self) -> None:
        self.last = time.perf_counter()
        self.timer.start(10)

    def beat(self) -> None:
        now = time.perf_counter()
        self.late.append(now - self.last - 0.01)
        self.last = now


class QuickTableView(TableView):
    def showEvent(self, event: QShowEvent) -> None:
        QTableView.showEvent(self, event)  # not TableView's: that one measures each row


class Window(QStackedWidget):
    def __init__(self) -> None:
        super().__init__()
        self.model = Measurements()
        self.table = QuickTableView(self)
        self.table.setModel(self.model)
        self.addWidget(QLabel("Welcome", self))
        self.addWidget(self.table)
        self.setCurrentWidget(self.table)
        self.resize(460, 300)

    def turn_page(self) -> None:
        self.setCurrentIndex((self.currentIndex() + 1) % self.count())


def main() -> None:
    app = QApplication(sys.argv)
    window = Window()
    window.show()
    heartbeat = Heartbeat()
    pages = QTimer()
    pages.timeout.connect(window.turn_page)
    QTimer.singleShot(500, heartbeat.start)
    QTimer.singleShot(600, lambda: pages.start(1200))
    QTimer.singleShot(8000, app.quit)
    app.exec()
    print(f"{len(heartbeat.late)} ticks, worst tick {max(heartbeat.late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
