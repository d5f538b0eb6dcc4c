"""A little window for bills that stalls in known ways: python window.py [--offscreen] [--seconds N].

    loopcanary run examples/qt_window/window.py

Each button does its work where it should not be done, in the thread that draws. With --offscreen no screen is
needed, and the buttons press themselves.
"""

from __future__ import annotations

import argparse
import os
import sys

from ledger import Ledger
from PySide6.QtCore import QProcess, QTimer
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QListWidget,
    QMainWindow,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from sparkline import Sparkline


class Window(QMainWindow):
    """Buttons on the left of what they do."""

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Bills")
        self.ledger = Ledger()
        self.bills = QListWidget()
        self.progress = QProgressBar()
        self.sparkline = Sparkline()
        column = QVBoxLayout()
        self.buttons = [
            self.button("Import bills", self.import_bills),
            self.button("Check totals", self.check_totals),
            self.button("Sync with the bank", self.sync),
            self.button("Print", self.print_bills),
            self.button("Export", self.export),
            self.button("About", self.about),
        ]
        for widget in (*self.buttons, self.progress, self.bills, self.sparkline):
            column.addWidget(widget)
        content = QWidget()
        content.setLayout(column)
        self.setCentralWidget(content)

    def button(self, text: str, slot: object) -> QPushButton:
        made = QPushButton(text)
        made.clicked.connect(slot)
        return made

    def import_bills(self) -> None:
        """A large file is parsed at once: native-cpu."""
        for bill in self.ledger.load():
            self.bills.addItem(bill["who"])

    def check_totals(self) -> None:
        """A loop in Python: cpu."""
        self.statusBar().showMessage(f"total {self.ledger.total():.2f}")

    def sync(self) -> None:
        """Waits for a lock that the thread which saves holds: lock."""
        self.ledger.save_in_the_background()
        self.ledger.sync()

    def print_bills(self) -> None:
        """Waits for a child process: subprocess."""
        printer = QProcess(self)
        printer.start("sleep", ["0.4"])
        printer.waitForFinished()

    def export(self) -> None:
        """As it should be: in pieces, with events handled in between. No stall."""
        for percent in range(101):
            self.ledger.export_one_percent()
            self.progress.setValue(percent)
            QApplication.processEvents()

    def about(self) -> None:
        """A modal dialog has a loop of its own: no stall, however long it stays."""
        dialog = QDialog(self)
        layout = QVBoxLayout(dialog)
        layout.addWidget(QLabel("Bills, version 0"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok)
        buttons.accepted.connect(dialog.accept)
        layout.addWidget(buttons)
        QTimer.singleShot(2_000, dialog.accept)
        dialog.exec()


def press_by_itself(window: Window, seconds: float) -> None:
    """Presses one button after the other; the application ends after `seconds`."""
    for number, button in enumerate(window.buttons):
        QTimer.singleShot(800 * number + 500, button.click)
    QTimer.singleShot(int(seconds * 1_000), QApplication.quit)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--offscreen", action="store_true", help="without a screen, pressing its own buttons"
    )
    options.add_argument("--seconds", type=float, default=9.0, help="how long, with --offscreen")
    chosen = options.parse_args()
    if chosen.offscreen:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    application = QApplication(sys.argv[:1])
    window = Window()
    window.show()
    if chosen.offscreen:
        press_by_itself(window, chosen.seconds)
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
