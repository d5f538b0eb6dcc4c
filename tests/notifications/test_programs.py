"""Real programs that ask for notifications, and what arrives."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.notifications.receiving import GIVES_UP_S, Receiver, answer, receiver

from loopcanary.assembly import doctor
from loopcanary.assembly.store import host_name, open_store, recover
from loopcanary.cli import main
from loopcanary.model import Config, SessionEnd, Stall, StallState
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.notifications import notifier

PROGRAMS = Path(__file__).parent / "programs"
SECRET = "very-secret"
ENGINES = [pytest.param("native", marks=pytest.mark.native), "portable"]
needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")


@dataclass
class Notified:
    """Programs, and a receiver that is notified of their stalls."""

    store: Path
    there: Receiver

    def environment(self, **more: str) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        return {
            **clean,
            "LOOPCANARY_WEBHOOK_URL": self.there.url,
            "LOOPCANARY_NOTIFY": "webhook",
            "LOOPCANARY_NOTIFY_FROM": "stall",
            **more,
        }

    def start(self, program: str, *words: str, run: bool = True, **more: str) -> subprocess.Popen[str]:
        watched = ["-m", "loopcanary", "run", "--store", str(self.store)] if run else []
        return subprocess.Popen(
            [sys.executable, *watched, str(PROGRAMS / program), *words],
            env=self.environment(**more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def stalls(self) -> list[Stall]:
        """Stored ones, and those that go on; as every command does, it takes in what dead processes left."""
        store = open_store(self.store)
        try:
            return [*recover(store).ongoing, *store.reader.issues(STALLS)]
        finally:
            store.close()

    def status(self) -> dict[str, Any]:
        return json.loads((self.store / "notifications" / "webhook.json").read_text())

    def wait_for_the_end_of_the_sender(self) -> None:
        """Its status says who it is; the kernel says when it is over."""
        try:
            descriptor = os.pidfd_open(self.status()["pid"])
        except ProcessLookupError:
            return
        try:
            assert select.select([descriptor], [], [], GIVES_UP_S)[0]
        finally:
            os.close(descriptor)

    def told(self) -> list[str]:
        """First lines of all that has arrived."""
        lines = []
        while not self.there.posts.empty():
            lines.append(self.there.next()["text"].partition("\n")[0].strip("`"))
        return lines


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[Notified]:
    with receiver(f"/services/{SECRET}") as there:
        yield Notified(tmp_path / "store", there)


def ended(program: subprocess.Popen[str], said: str | None = None) -> tuple[str, str]:
    return program.communicate(said, timeout=GIVES_UP_S)


def stalls_in(titles: list[str]) -> int:
    """How many stalls these titles are about. "ended after" is about a stall that was reported as a hang
    before: on a busy machine short stalls become hangs."""
    begun = [title for title in titles if not title.startswith("ended after ")]
    counts = [re.match(r"(\d+) more stalls? until the end", title) for title in begun]
    return sum(1 if count is None else int(count[1]) for count in counts)


@needs_pidfd
@pytest.mark.parametrize("engine", ENGINES)
def test_the_stalls_of_a_program_that_asks_for_it_are_sent(notified: Notified, engine: str):
    # Without a session bus, or the library, there is no desktop: the other way is gone all the same.
    ways = {"LOOPCANARY_NOTIFY": "desktop,webhook", "DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": ""}
    program = notified.start("stalling.py", "3", "150", "exit", LOOPCANARY_ENGINE=engine, **ways)
    ended(program)
    assert program.returncode == 0
    first = notified.there.next()
    title = first["blocks"][0]["text"]["text"]
    assert re.match(r"(stall|hang|ANR) of [\d.]+ m?s: ", title)
    assert "stalling.py (pid" in first["text"]
    notified.wait_for_the_end_of_the_sender()
    assert stalls_in([title, *notified.told()]) == len(notified.stalls())
    assert notified.status()["lost"] == 0
    assert notified.status()["problem"] is None


@needs_pidfd
@pytest.mark.native
@pytest.mark.parametrize("keeper", ["0", "1"])
def test_a_kill_during_a_stall_is_notified(notified: Notified, keeper: str):
    """Without a keeper, by the next start."""
    program = notified.start(
        "stalling.py", "0", "0", "killed", LOOPCANARY_NOTIFY_FROM="killed", LOOPCANARY_KEEPER=keeper
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "has stalled\n"
    assert program.stdout.readline() == "stalls\n"
    # Once the stall is in the flight file it outlives the process.
    while not any(stall.state is StallState.ONGOING for stall in notified.stalls()):
        assert program.poll() is None
    # Root's keeper does what a program says that it has seen alive.
    while keeper == "1" and os.geteuid() == 0 and not (notified.store / "notifications").exists():
        assert program.poll() is None
    ended(program, "kill\n")
    assert program.returncode == -9
    if keeper == "0":
        ended(notified.start("stalling.py", "0", "0", "exit", LOOPCANARY_KEEPER=keeper))
    title = notified.there.next()["blocks"][0]["text"]["text"]
    assert title.startswith("killed while stalled for ")
    notified.wait_for_the_end_of_the_sender()
    assert notified.there.posts.empty()


@needs_pidfd
def test_a_receiver_that_does_not_answer_holds_up_nothing(notified: Notified):
    may_answer = threading.Event()

    def late(handler: Any) -> None:
        assert may_answer.wait(GIVES_UP_S)
        answer(200)(handler)

    notified.there.answers.put(late)
    program = notified.start("stalling.py", "1", "150", "wait")
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "has stalled\n"
        notified.there.next()  # and it waits for its answer
        ended(program, "end\n")
        assert program.returncode == 0
        assert notified.stalls()
    finally:
        may_answer.set()
    notified.wait_for_the_end_of_the_sender()


@needs_pidfd
def test_the_address_is_shown_nowhere(notified: Notified, monkeypatch, capsys):
    for _ in range(20):
        notified.there.answers.put(answer(404))
    program = notified.start("stalling.py", "1", "150", "wait")
    assert program.stdout is not None
    assert program.stdout.readline() == "has stalled\n"
    notified.there.next()
    sender = notified.status()["pid"]
    shown = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (sender, program.pid)]
    assert b"loopcanary" in shown[0]
    out, err = ended(program, "end\n")
    notified.wait_for_the_end_of_the_sender()
    status = notified.status()
    assert (status["sent"], status["problem"]) == (0, "the receiver answers HTTP 404")
    assert status["lost_stalls"] == len(notified.stalls())
    settings = Config(notify=("webhook",), store=notified.store)
    monkeypatch.setenv("LOOPCANARY_WEBHOOK_URL", notified.there.url)
    ((name, state, detail),) = doctor._telling(settings)
    assert (name, state) == ("webhook", "problem")
    assert re.match(r"0 sent, \d+ lost, of \d+ stalls?: the receiver answers HTTP 404$", detail)
    assert main(["report", "--format", "json", "--store", str(notified.store)]) == 0
    report = capsys.readouterr()
    shown += [text.encode() for text in (out, err, detail, report.out, report.err)]
    shown += [path.read_bytes() for path in notified.store.rglob("*") if path.is_file()]
    assert [text for text in shown if SECRET.encode() in text] == []


@needs_pidfd
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("keeper", ["0", "1"])
def test_stalls_of_workers_are_sent_once(notified: Notified, keeper: str):
    program = notified.start("forking.py", LOOPCANARY_KEEPER=keeper)
    ended(program)
    assert program.returncode == 0
    first = notified.there.next()["blocks"][0]["text"]["text"]
    notified.wait_for_the_end_of_the_sender()
    assert stalls_in([first, *notified.told()]) == len(notified.stalls()) >= 3


NO_ADDRESS = (
    "webhook: no address is set: put it into LOOPCANARY_WEBHOOK_URL, or into a file and its path into "
    "webhook_file"
)
NO_DESKTOP = {"LOOPCANARY_NOTIFY": "desktop", "DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": ""}
IMPOSSIBLE = {
    "nobody knows where the webhook is": ({"LOOPCANARY_WEBHOOK_URL": ""}, NO_ADDRESS),
}
if sys.platform.startswith("linux"):
    IMPOSSIBLE["there is no desktop"] = (NO_DESKTOP, str(notifier.no_desktop({})))


@pytest.mark.parametrize("case", IMPOSSIBLE)
@pytest.mark.parametrize("keeper", ["0", "1"])
def test_impossible_notifications_are_one_line(notified: Notified, case: str, keeper: str):
    variables, line = IMPOSSIBLE[case]
    code = "import sys, time; import loopcanary, asyncio; loopcanary.install(console=True)"
    code += "\nasync def main(): asyncio.get_running_loop().call_soon(time.sleep, 0.15)"
    code += "\nasyncio.run(main()); sys.stdin.readline(); loopcanary.uninstall(); print('ran')"
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        env=notified.environment(LOOPCANARY_STORE=str(notified.store), LOOPCANARY_KEEPER=keeper, **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    # Drain or keeper say it, when they come to it: a program that ends before never asks.
    assert f"loopcanary: {line}\n" in iter(program.stderr.readline, "")
    out, err = ended(program, "end\n")
    assert out == "ran\n"
    assert "Traceback" not in err


@pytest.mark.parametrize("engine", ENGINES)
def test_who_the_program_is_is_known_while_it_runs(notified: Notified, engine: str):
    program = notified.start("stalling.py", "1", "150", "wait", LOOPCANARY_ENGINE=engine)
    assert "stalling.py (pid" in notified.there.next()["text"]
    store = open_store(notified.store)
    [session] = [*recover(store).running, *store.maintenance.running_sessions(host_name())]
    store.close()
    assert (session.pid, session.engine) == (program.pid, engine)
    ended(program, "go on\n")
    store = open_store(notified.store)
    [session] = store.reader.sessions(IssueQuery())
    store.close()
    assert (session.end, bool(session.loops)) == (SessionEnd.EXIT, True)
