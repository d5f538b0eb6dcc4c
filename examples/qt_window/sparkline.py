"""A curve that moves at the screen's pace, and once a second takes too long to paint."""

from __future__ import annotations

import math
import time

from PySide6.QtCore import QPointF, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QWidget


class Sparkline(QWidget):
    """Sixty frames a second."""

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumHeight(60)
        self._phase = 0
        self._ticking = QTimer(self)
        self._ticking.timeout.connect(self._tick)
        self._ticking.start(16)

    def _tick(self) -> None:
        self._phase += 1
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802 - Qt's name
        if self._phase % 60 == 59:
            time.sleep(0.12)  # looks for the font that it has not cached
        height = self.height() / 2
        points = [QPointF(x, height - height * math.sin((x + self._phase) / 12)) for x in range(self.width())]
        painter = QPainter(self)
        painter.drawPolyline(QPolygonF(points))
        painter.end()
