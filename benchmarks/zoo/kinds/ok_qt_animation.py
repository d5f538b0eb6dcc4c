"""Control: a widget that paints itself anew sixty times a second."""

from __future__ import annotations

from zoo.loops import host
from zoo.stage import pause, run

EXPECT = {"control": True, "loops": ["pyside6", "pyqt6"]}
QT = host()


class Ball(QT.QtWidgets.QWidget):
    frames = 0

    def paintEvent(self, event):  # noqa: N802 - Qt's name
        self.frames += 1
        painter = QT.QtGui.QPainter(self)
        painter.drawEllipse(self.frames, 10, 20, 20)
        painter.end()


async def handler():
    ball = Ball()
    ball.show()
    timer = QT.QtCore.QTimer(ball)
    timer.timeout.connect(ball.update)
    timer.start(16)
    while ball.frames < 120:
        await pause(0.02)
    timer.stop()
    ball.close()


if __name__ == "__main__":
    run(handler)
