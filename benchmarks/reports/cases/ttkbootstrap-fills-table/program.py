"""A window with the members of a club: a press on the button fills the table."""

from __future__ import annotations

import os
import subprocess
import time

import ttkbootstrap
from ttkbootstrap.widgets.tableview import Tableview

COLUMNS = ["number", "name", "town", "joined"]
MEMBERS = [(number, f"Member {number}", f"Town {number % 17}", 1990 + number % 35) for number in range(400)]


def start_display() -> subprocess.Popen[bytes] | None:
    if "DISPLAY" in os.environ:
        return None
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1000x700x24"],
        pass_fds=[writer], stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    with os.fdopen(reader) as numbers:
        os.environ["DISPLAY"] = ":" + numbers.readline().strip()
    return server


class Club(ttkbootstrap.Window):
    def __init__(self) -> None:
        super().__init__(title="club")
        self.table = Tableview(self, coldata=COLUMNS, rowdata=[], paginated=True, pagesize=25)
        self.table.pack(fill="both", expand=True)
        self.button = ttkbootstrap.Button(self, text="Load", command=self.load)
        self.button.pack()
        self.late: list[float] = []
        self.last = 0.0

    def load(self) -> None:
        self.table.build_table_data(COLUMNS, MEMBERS)

    def begin(self) -> None:
        self.last = time.perf_counter()
        self.after(10, self.beat)

    def beat(self) -> None:
        now = time.perf_counter()
        self.late.append(now - self.last - 0.01)
        self.last = now
        self.after(10, self.beat)


def main() -> None:
    club = Club()
    club.after(1000, club.begin)
    club.after(2000, club.button.invoke)
    club.after(4000, club.quit)
    club.mainloop()
    print(f"{len(club.table.tablerows)} members")
    print(f"{len(club.late)} ticks, worst tick {max(club.late) * 1000:.0f} ms")
    club.destroy()


if __name__ == "__main__":
    display = start_display()
    main()
    if display:
        display.terminate()
        display.wait()
