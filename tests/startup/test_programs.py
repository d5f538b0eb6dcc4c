"""Whole programs: their starts are stored, also where they are killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.native
GIVES_UP_S = 280
BOTH_WAYS = pytest.mark.parametrize("keeper", ["0", "1"], ids=["in process", "keeper"])


def run(folder: Path, keeper: str, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    environment = {**clean, "LOOPCANARY_KEEPER": keeper, "PYTHONDONTWRITEBYTECODE": "1"}
    command = (sys.executable, "-m", "loopcanary", *words)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=GIVES_UP_S, check=False
    )


def starts(folder: Path) -> list[dict[str, Any]]:
    issues = json.loads(run(folder, "0", "report", "--format", "json").stdout)["issues"]
    return [issue for issue in issues if issue["kind"] == "startup"]


def reached(start: dict[str, Any]) -> list[str]:
    return [one["kind"] for one in start["milestones"]]


def imports(start: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in start["phases"] if one["kind"] == "import"}


@BOTH_WAYS
def test_a_programs_start_is_stored_with_its_imports(tmp_path, keeper):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/__init__.py").write_text("import parts.inner\n")
    (tmp_path / "parts/inner.py").write_text("limit = 1\n")
    (tmp_path / "app.py").write_text(
        "import asyncio\nimport parts\nimport importlib._bootstrap as machinery\n"
        "asyncio.run(asyncio.sleep(0.01))\nprint(type(machinery._find_and_load).__name__)\n"
        "import json.tool\nprint(type(machinery._find_and_load).__name__)\n"
    )
    done = run(tmp_path, keeper, "run", "--startup", "app.py")
    assert done.returncode == 0, done.stderr
    # Put back by the first import after the start's end.
    assert done.stdout.split() == ["PatchedFunction", "function"]
    [start] = starts(tmp_path)
    assert reached(start) == ["interpreter", "site", "first-turn", "first-idle", "main-module"]
    seen = imports(start)
    assert seen["parts"]["origin"] == seen["parts.inner"]["origin"] == "compiled"
    assert seen["parts.inner"]["depth"] == seen["parts"]["depth"] + 1
    assert seen["parts.inner"]["bytes_read"] == 10
    assert "json.tool" not in seen
    assert start["run_ms"] > 0


@BOTH_WAYS
def test_a_start_that_is_killed_is_stored(tmp_path, keeper):
    (tmp_path / "fatal.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    (tmp_path / "app.py").write_text("import json.tool\nimport fatal\n")
    assert run(tmp_path, keeper, "run", "--startup", "app.py").returncode == -signal.SIGKILL
    [start] = starts(tmp_path)
    assert start["cut"]
    assert imports(start)["fatal"]["open"]


def test_a_server_s_start_ends_when_it_listens(tmp_path):
    (tmp_path / "app.py").write_text(
        "import socket\nwith socket.create_server(('127.0.0.1', 0)) as server:\n    import json.tool\n"
    )
    assert run(tmp_path, "0", "run", "--startup", "app.py").returncode == 0
    [start] = starts(tmp_path)
    assert reached(start)[-2:] == ["listening", "main-module"]
    assert start["phases"][-1]["kind"] != "main-module"


def test_a_start_over_its_limit_is_reported(tmp_path):
    (tmp_path / "loopcanary.toml").write_text('startup_cold = "1ms"\nstartup_warm = "1ms"\n')
    done = run(tmp_path, "0", "run", "--startup", "-c", "print('here')")
    assert "start took" in done.stderr


def test_a_forked_child_notes_nothing_in_its_parents_file(tmp_path):
    (tmp_path / "app.py").write_text(
        "import os\nif os.fork() == 0:\n    import json.tool\n    os._exit(0)\nos.wait()\nimport csv\n"
    )
    assert run(tmp_path, "0", "run", "--startup", "app.py").returncode == 0
    [start] = starts(tmp_path)
    assert "csv" in imports(start)
    assert "json.tool" not in imports(start)
