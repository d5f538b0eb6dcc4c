"""The whole of it in a terminal (tmux): a real program that hangs and is killed, keys, what is shown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.targets import until

from .test_programs import HANGS, program_name, watched

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux"),
]


class Terminal:
    """A tmux server of its own, with one pane."""

    def __init__(self, folder: Path, command: list[str], size: tuple[int, int], **environ: str) -> None:
        self._socket = str(folder / "tmux")
        # Readline, where a worker of pytest has it, puts a size into the environment.
        others = ("LOOPCANARY", "TMUX", "COLUMNS", "LINES")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        columns, lines = map(str, size)
        new = ["-f", os.devnull, "new-session", "-d", "-s", "top", "-x", columns, "-y", lines, *command]
        subprocess.run(["tmux", "-S", self._socket, *new], env={**kept, **environ}, check=True)

    def text(self) -> str:
        """What it shows; empty once its program has ended."""
        asked = subprocess.run(
            ["tmux", "-S", self._socket, "capture-pane", "-p", "-t", "top"],
            capture_output=True,
            text=True,
            check=False,
        )
        return asked.stdout

    def has(self, *words: str) -> str:
        """The text, once it has all of these words."""
        return until(lambda: text if all(word in (text := self.text()) for word in words) else None)

    def press(self, *keys: str) -> None:
        subprocess.run(["tmux", "-S", self._socket, "send-keys", "-t", "top", *keys], check=True)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)


@pytest.fixture(params=[(80, 24), (160, 50)], ids=["80x24", "160x50"])
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.fixture
def terminal(tmp_path: Path, package_path: Path, size: tuple[int, int]) -> Iterator[Terminal]:
    pytest.importorskip("textual")
    path = os.pathsep.join(filter(None, [str(package_path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "loopcanary", "top", "--filter", program_name(tmp_path)]
    made = Terminal(tmp_path, command, size, PYTHONPATH=path, LANG="C.UTF-8")
    yield made
    made.close()


def test_from_the_first_reading_to_the_end(
    terminal: Terminal, tmp_path: Path, package_path: Path, size: tuple[int, int]
):
    with watched(HANGS, tmp_path, package_path) as program:
        terminal.has("hung", str(program.pid), "work (request-7)", "so far; ")
        until(lambda: ("last stall" in terminal.text().splitlines()[1]) == (size[0] == 160) or None)
        terminal.press("g")
        terminal.has("The last stall", "still in progress")
        terminal.press("q")
        terminal.has("? help")
        terminal.press("l")
        terminal.has(f"pid {program.pid}", "esc back")
        terminal.press("Escape")
        terminal.has("? help")
        program.kill()
        program.wait()
        terminal.has("killed")
    terminal.press("q")  # alone: an escape right before it is Alt in a terminal
    until(lambda: True if not terminal.text() else None)
