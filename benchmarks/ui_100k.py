"""How long pages take over a full store: 100,000 stalls of 500 bugs, served by `loopcanary ui`.

What counts is the CPU time of the server, which waits for nothing, for a page when the store has just changed
and nothing that was answered before is of use; and `again`, when it has not. First paint is wall time, in
Chromium where that and Playwright are there.
"""

from __future__ import annotations

import contextlib
import http.client
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from harness import table
from report_100k import fill

from loopcanary.model.search import Remark
from loopcanary.store import Store

RUNS = table.sized(5, 1)
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]"
LISTS = {
    "Groups": "/groups",
    "Groups, page 5": "/groups?page=5",
    "Groups of a cause": "/groups?cause=lock",
    "Groups of a scene (two thirds of all)": "/groups?scene=checkout",
    "Groups of own code (all)": "/groups?code=own",
    "Groups of the last hour": "/groups?since=1h",
    "Groups of a session": "/groups?session=s3",
    "Groups with a text (a tenth of all)": "/groups?text=load_7",
    "Groups with a text (all)": "/groups?text=handle",
}
OTHERS = {
    "Overview": "/",
    "Group of 12,000 stalls": "/group?f=1:0000000000000000",
    "Sessions": "/sessions",
    "Changes": "/changes",
}


class Server:
    """`loopcanary ui` over a store, and a connection that it lets in."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.address = process.stdout.readline().split()[-1]
        self._process = process
        place = urlsplit(self.address)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port)
        self._connection.request("GET", f"/?{place.query}")
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = (answer.getheader("set-cookie") or "").partition(";")[0]

    def cpu_ms(self, path: str) -> float:
        """What the page at this address costs the server."""
        begin = self._used_ns()
        self._connection.request("GET", path, headers={"cookie": self._cookie})
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        return (self._used_ns() - begin) / 1e6

    def _used_ns(self) -> int:
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks)


@contextlib.contextmanager
def serving(store: Path) -> Iterator[Server]:
    """The server, until it is not wanted any more."""
    command = [sys.executable, "-m", "loopcanary", "ui", "--no-browser", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def medians(server: Server, path: str, change: Callable[[], None]) -> tuple[float, float]:
    """Milliseconds of the page anew and again."""
    anew, again = [], []
    for _ in range(RUNS):
        change()
        anew.append(server.cpu_ms(path))
        again.append(server.cpu_ms(path))
    return statistics.median(anew), statistics.median(again)


def first_paints_ms(store: Path) -> list[float]:
    """Of the list, in a browser that has seen nothing of it, each time of a server that has just begun; empty
    without Chromium or Playwright."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return []
    if chromium is None:
        return []
    paints = []
    with sync_playwright() as started:
        for _ in range(RUNS):
            with serving(store) as server:
                browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page(bypass_csp=True)
                page.goto(server.address.replace("/?", "/doctor?"))  # the cookie
                page.goto(server.address.partition("/?")[0] + "/groups")
                page.wait_for_function(f"{_PAINT} !== undefined")
                paints.append(page.evaluate(f"{_PAINT}.startTime"))
                browser.close()
    return paints


def measure() -> None:
    """Prints the time of each page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        fill(place)
        writer = Store(place)
        notes = iter(range(1_000_000))

        def change() -> None:
            writer.remark("1:none", Remark(note=str(next(notes))))

        with serving(place) as server:
            table.at_most("Groups, the first page of a server", server.cpu_ms("/groups"), 200, unit="ms")
            for what, path in LISTS.items():
                anew, again = medians(server, path, change)
                table.at_most(what, anew, 200, unit="ms", note=f"again {again:.0f} ms")
            for what, path in OTHERS.items():
                anew, again = medians(server, path, change)
                table.told(what, f"{anew:.0f} ms", note=f"again {again:.0f} ms")
        writer.close()
        if paints := first_paints_ms(place):
            table.at_most("Groups, first paint, wall", statistics.median(paints), 1_000, unit="ms")
        else:
            table.told("Groups, first paint, wall", "not measured: no Chromium or Playwright")


if __name__ == "__main__":
    table.run(measure)
