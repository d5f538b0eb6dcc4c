"""A window runs scripts step by step: each step waits for a child process, and the window stays alive."""

import sys
import time

from PySide6.QtCore import QEventLoop, QObject, QProcess, Qt, QTimer
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QMainWindow


class Heartbeat(QObject):
    """The spinner of the window."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[float] = []
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


class Window(QMainWindow):
    def __init__(self) -> None:
        super().__init__()
        self.label = QLabel("ready", self)
        self.setCentralWidget(self.label)

    def wait_for(self, process: QProcess) -> int:
        """Returns only when the process has ended: one function, as if it were blocking."""
        loop = QEventLoop()
        process.finished.connect(loop.quit)
        if process.state() != QProcess.ProcessState.NotRunning:
            loop.exec()
        return process.exitCode()

    def generate_mesh(self) -> int:
        process = QProcess(self)
        process.start(sys.executable, ["-c", "import time; time.sleep(1.2)"])
        return self.wait_for(process)

    def pause(self, seconds: float) -> None:
        loop = QEventLoop()
        QTimer.singleShot(int(seconds * 1000), loop.quit)
        loop.exec()

    def ask(self) -> bool:
        dialog = QDialog(self)
        QTimer.singleShot(900, dialog.accept)  # the person thinks about it
        return dialog.exec() == QDialog.DialogCode.Accepted

    def run_script(self) -> None:
        self.label.setText("generating the mesh")
        code = self.generate_mesh()
        self.label.setText("waiting for the disk")
        self.pause(0.8)
        self.label.setText("closed" if self.ask() and code == 0 else "left open")
        print(self.label.text())


def main() -> None:
    app = QApplication(sys.argv)
    window = Window()
    window.show()
    heartbeat = Heartbeat()
    QTimer.singleShot(500, heartbeat.start)
    QTimer.singleShot(700, window.run_script)
    QTimer.singleShot(5500, app.quit)
    app.exec()
    print(f"{len(heartbeat.late)} ticks, worst tick {max(heartbeat.late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
