from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from loopcanary.store import Store

PATIENCE_S = 280
LOOPCANARY = "import sys; from loopcanary.cli import main; sys.exit(main())"
WITHOUT = "import sys; sys.modules['starlette'] = None; from loopcanary.cli import main; sys.exit(main())"


@pytest.fixture
def environment(package_path: Path, tmp_path: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(package_path), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    return {**kept, "PYTHONPATH": path, "XDG_STATE_HOME": str(tmp_path / "state")}


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@contextmanager
def served(environment: dict[str, str], *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real `loopcanary ui` and the address that it printed."""
    command = [sys.executable, "-c", LOOPCANARY, "ui", "--no-browser", *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("loopcanary: http://127.0.0.1:"), (
                line,
                process.stderr and process.stderr.read(),
            )
            yield process, line.split()[1]
        finally:
            process.kill()


def test_it_serves_until_it_is_interrupted(environment: dict[str, str], filled: Store):
    with served(environment, str(filled.folder)) as (process, address):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address.partition("?")[0], timeout=PATIENCE_S)
        assert refused.value.code == 403
        refused.value.close()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(address, timeout=PATIENCE_S) as page:
            assert "token" not in page.url
            assert "flush (cache.py:12)" in page.read().decode()
        with browser.open(address.partition("/?")[0] + "/live", timeout=PATIENCE_S) as stream:
            assert stream.readline().startswith(b"data: {")
            process.send_signal(signal.SIGINT)
            stream.read()
        assert process.wait(timeout=PATIENCE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_port_that_is_taken_is_one_line(environment: dict[str, str], filled: Store):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-c", LOOPCANARY, "ui", "--no-browser", "--port", port, str(filled.folder)]
        ran = run(command, environment)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"loopcanary: cannot listen on port {port}: ")
    assert ran.stderr.count("\n") == 1


def test_without_its_libraries_it_says_what_to_install(environment: dict[str, str]):
    ran = run([sys.executable, "-c", WITHOUT, "ui", "--no-browser"], environment)
    assert ran.returncode == 2
    assert ran.stderr == 'loopcanary: the pages need starlette: pip install "loopcanary[ui]"\n'


def test_without_a_store_it_serves_nothing(environment: dict[str, str], tmp_path: Path):
    command = [sys.executable, "-c", LOOPCANARY, "ui", "--no-browser", str(tmp_path / "none")]
    ran = run(command, environment)
    assert ran.returncode == 1
    assert "there is no store" in ran.stderr
