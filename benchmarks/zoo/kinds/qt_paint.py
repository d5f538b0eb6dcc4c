"""A widget's paintEvent computes in pure Python."""

from __future__ import annotations

from zoo.loops import host
from zoo.stage import measured, pause, run, sized

EXPECT = {"cause": ["cpu"], "loops": ["pyside6", "pyqt6"]}
QT = host()


def heights(count):
    total = 0
    for place in range(count):  # <- culprit
        total += place * place % 7  # <- culprit
    return total


ENOUGH = sized(heights, 0.3)


class Chart(QT.QtWidgets.QWidget):
    slow = False

    def paintEvent(self, event):  # noqa: N802 - Qt's name
        if self.slow:
            self.slow = False
            with measured():
                heights(ENOUGH)


async def handler():
    chart = Chart()
    chart.show()
    await pause(0.1)
    chart.slow = True
    chart.update()
    while chart.slow:
        await pause(0.01)
    chart.close()


if __name__ == "__main__":
    run(handler)
