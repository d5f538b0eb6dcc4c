"""Desktop notifications over a real session bus."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.notifications.test_programs import PROGRAMS

from loopcanary.assembly import doctor
from loopcanary.cli import main
from loopcanary.model import Config
from loopcanary.notifications import notifier
from loopcanary.notifications.desktop import Desktop
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import DeliveryError

GIVES_UP_S = 280
has_library = pytest.mark.skipif(
    importlib.util.find_spec("desktop_notifier") is None, reason="desktop-notifier is not installed"
)
has_bus = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="there is no dbus-daemon here")


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[str]:
    """Address of a session bus."""
    configuration = tmp_path / "session.conf"
    configuration.write_text(
        '<busconfig><type>session</type><listen>unix:dir=/tmp</listen><policy context="default">'
        '<allow send_destination="*"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>'
    )
    command = ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address=1"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip()
        assert address
        yield address
    finally:
        daemon.terminate()
        daemon.communicate(timeout=GIVES_UP_S)


@contextmanager
def service(bus: str) -> Iterator[subprocess.Popen[str]]:
    """A desktop that shows notifications."""
    running = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("bus.py"))],
        env={**os.environ, "DBUS_SESSION_BUS_ADDRESS": bus},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        yield running
    finally:
        running.communicate(timeout=GIVES_UP_S)


def loopcanary(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LOOPCANARY", "DBUS", "XDG_RUNTIME"))
    }
    return subprocess.run(
        [sys.executable, "-m", "loopcanary", *words],
        env={**clean, **variables},
        capture_output=True,
        text=True,
        timeout=GIVES_UP_S,
        check=False,
    )


def shown(running: subprocess.Popen[str]) -> dict[str, Any]:
    assert running.stdout is not None
    assert select.select([running.stdout], [], [], GIVES_UP_S)[0]
    return json.loads(running.stdout.readline())


@has_library
@has_bus
@pytest.mark.parametrize("keeper", ["0", "1"])
def test_a_stall_of_a_program_is_shown_on_the_desktop(bus: str, tmp_path: Path, keeper: str):
    with service(bus) as running:
        run = ["run", "--quiet", "--notify", "desktop", "--store", str(tmp_path / "store")]
        run += ["--name", "<b>shop</b> & co"]  # a body is marked up, and names in it are not
        done = loopcanary(
            *run,
            *(str(PROGRAMS / "stalling.py"), "1", "150", "exit"),
            DBUS_SESSION_BUS_ADDRESS=bus,
            LOOPCANARY_NOTIFY_FROM="stall",
            LOOPCANARY_KEEPER=keeper,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "has stalled\n", "")
        notification = shown(running)
    assert notification["app"] == "loopcanary"
    assert re.match(r"(stall|hang|ANR) of [\d.]+ m?s: ", notification["title"])
    assert "&lt;b&gt;shop&lt;/b&gt; &amp; co (pid" in notification["body"]
    assert notification["hints"].keys() == {"urgency"}


@has_library
@has_bus
@pytest.mark.filterwarnings("ignore:unclosed <socket")  # of the library, which does not close it
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # and uses what 3.14 deprecates
def test_one_that_is_not_shown_is_counted(bus: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus)
    with closing(Desktop()) as desktop, pytest.raises(DeliveryError, match="is a service for them running"):
        desktop.deliver(Notice(title="hang"))
    gc.collect()


@has_library
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the others have no bus")
def test_without_a_desktop_session_one_line_says_so(capsys, monkeypatch, tmp_path):
    for name in ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    line = "there is no desktop session here (no D-Bus session bus)"
    assert main(["keep", "--notify", "desktop", str(tmp_path / "store")]) == 2
    assert capsys.readouterr().err == f"loopcanary: {line}\n"
    asked_for = Config(notify=("desktop",), store=tmp_path / "store")
    assert list(doctor._telling(asked_for)) == [("desktop", "off", line)]


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(notifier.importlib.util, "find_spec", lambda _: None)
    assert notifier.no_desktop({"DBUS_SESSION_BUS_ADDRESS": "unix:"}) == (
        "desktop notifications need desktop-notifier: pip install 'loopcanary[notify]'"
    )
