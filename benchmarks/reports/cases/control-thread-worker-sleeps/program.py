"""A terminal program reads from a slow client library with time.sleep in it, and hands lines to its log."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import time

from textual import work
from textual.app import App, ComposeResult
from textual.widgets import Label, Log


class SlowLibrary:
    """A client that knows nothing of asyncio."""

    def fetch(self, number: int) -> str:
        time.sleep(0.5)
        return f"record {number}"

    def convert(self, record: str) -> str:
        command = [sys.executable, "-c", f"import time; time.sleep(0.3); print({record!r}.upper())"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def sign(self, record: str) -> str:
        return hashlib.scrypt(record.encode(), salt=b"s", n=2**12, r=8, p=1).hex()[:12]


class Records(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.library = SlowLibrary()
        self.late: list[float] = []

    def compose(self) -> ComposeResult:
        yield Label("reading", id="state")
        yield Log()

    def on_mount(self) -> None:
        self.set_timer(1, self.start)

    def start(self) -> None:
        self.beats = asyncio.create_task(self.heartbeat())
        self.read_records()

    async def heartbeat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            self.late.append(time.perf_counter() - began - 0.01)

    @work(thread=True)
    def read_records(self) -> None:
        for number in range(4):
            record = self.library.convert(self.library.fetch(number))
            signed = self.library.sign(record)
            self.call_from_thread(self.show, f"{record} {signed}")  # waits until the line is shown
        self.call_from_thread(self.finish)

    def show(self, line: str) -> None:
        self.query_one(Log).write_line(line)

    def finish(self) -> None:
        self.beats.cancel()
        self.exit()


def main() -> None:
    app = Records()
    app.run(headless=True)
    print(f"{len(app.late)} ticks, worst tick {max(app.late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
