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


def run(
    folder: Path, keeper: str, *words: str, limit: str = "1h", **settings: str
) -> subprocess.CompletedProcess[str]:
    """`limit`: a start that takes longer is told when it is over, without what the main module does then."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    limits = {"LOOPCANARY_STARTUP_THRESHOLD": limit}
    environment = {**clean, **limits, "LOOPCANARY_KEEPER": keeper, "PYTHONDONTWRITEBYTECODE": "1", **settings}
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
        "print(type(machinery._find_and_load).__name__)\nasyncio.run(asyncio.sleep(0.01))\n"
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
    done = run(tmp_path, "0", "run", "--startup", "-c", "print('here')", limit="1ms")
    assert "start took" in done.stderr


def test_a_forked_child_notes_nothing_in_its_parents_file(tmp_path):
    (tmp_path / "app.py").write_text(
        "import os\nif os.fork() == 0:\n    import json.tool\n    os._exit(0)\nos.wait()\nimport csv\n"
    )
    assert run(tmp_path, "0", "run", "--startup", "app.py").returncode == 0
    [start] = starts(tmp_path)
    assert "csv" in imports(start)
    assert "json.tool" not in imports(start)


def test_a_child_s_start_is_recorded_from_its_begin(tmp_path):
    """It runs no loop, and the hook of its site module is what began."""
    (tmp_path / "inner.py").write_text("import json.tool\n")
    program = "import subprocess, sys\nsubprocess.call([sys.executable, 'inner.py'])\n"
    (tmp_path / "app.py").write_text(program)
    assert run(tmp_path, "0", "run", "--startup", "app.py").returncode == 0
    [inner] = [start for start in starts(tmp_path) if start["program"] == "inner.py"]
    assert reached(inner) == ["interpreter", "site", "main-module"]
    assert "json.tool" in imports(inner)


def test_a_start_that_is_seen_late_is_not_blamed_on_us(tmp_path):
    (tmp_path / "loopcanary.toml").write_text("startup = true\n")
    (tmp_path / "app.py").write_text(
        "import os\nos.environ['LOOPCANARY'] = '1'\nfrom loopcanary import _startup\n_startup.start()\n"
        "import asyncio\nasyncio.run(asyncio.sleep(0))\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, env=clean, timeout=GIVES_UP_S, check=True)
    [start] = starts(tmp_path)
    assert "interpreter" not in reached(start)
    assert [one["name"] for one in start["phases"] if one["kind"] == "other"] == [""]


WITH_AN_APPLICATION = {
    "uvicorn": "import uvicorn\nasync def app(scope, receive, send): ...\n"
    "config = uvicorn.Config(app, log_config=None)\nconfig.load()\n",
    "django": "from django.conf import settings\nsettings.configure()\n"
    "from django.core.wsgi import get_wsgi_application\nget_wsgi_application()\n",
}


@pytest.mark.parametrize("library", WITH_AN_APPLICATION)
def test_a_start_knows_when_the_application_was_made(tmp_path, library):
    pytest.importorskip(library)
    program = "import asyncio, uvicorn.server\n" if library == "uvicorn" else ""
    (tmp_path / "app.py").write_text(program + WITH_AN_APPLICATION[library] + "import csv\n")
    done = run(tmp_path, "0", "run", "--startup", "app.py")
    assert done.returncode == 0, done.stderr
    [start] = starts(tmp_path)
    assert reached(start) == ["interpreter", "site", "ready", "main-module"]
    [ready] = [one for one in start["phases"] if one["kind"] == "ready"]
    assert ready["duration_ms"] > 0


def test_a_start_ends_with_the_first_frame(tmp_path):
    pytest.importorskip("pygame")
    (tmp_path / "app.py").write_text(
        "import os\nos.environ['SDL_VIDEODRIVER'] = 'dummy'\nimport pygame\npygame.init()\n"
        "pygame.display.set_mode((10, 10))\npygame.display.flip()\nimport csv\npygame.display.flip()\n"
    )
    done = run(tmp_path, "0", "run", "--startup", "app.py")
    assert done.returncode == 0, done.stderr
    [start] = starts(tmp_path)
    assert reached(start)[-2:] == ["first-frame", "main-module"]
    assert start["phases"][-1]["kind"] != "main-module"
    assert "csv" not in imports(start)


SERVES = """
import asyncio, importlib._bootstrap as machinery

async def main():
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    async with server:
        await asyncio.sleep(0.01)

asyncio.run(main())
print(type(machinery._find_and_load).__name__)
"""


@BOTH_WAYS
def test_each_run_has_a_short_record_of_its_start(tmp_path, keeper):
    (tmp_path / "app.py").write_text(SERVES)
    done = run(tmp_path, keeper, "run", "--threshold", "1h", "app.py", limit="1ms")
    assert done.stdout == "function\n"
    [start] = starts(tmp_path)
    assert (start["start"], start["threshold_ms"], start["imports"]) == ("unknown", 0, 0)
    assert {"interpreter", "first-turn", "listening"} <= {*reached(start)}
    assert start["duration_ms"] == next(
        one["offset_ms"] for one in start["milestones"] if one["kind"] == "listening"
    )
    text = run(tmp_path, keeper, "report").stdout
    assert "No stall was recorded." in text
    assert " in loopcanary" in next(line for line in text.splitlines() if "start " in line)


@BOTH_WAYS
@pytest.mark.parametrize(
    "script", ["print(1)\n", "import os\nos.kill(os.getpid(), 9)\n"], ids=["a script", "killed"]
)
def test_scripts_have_no_short_record(tmp_path, keeper, script):
    (tmp_path / "app.py").write_text(script)
    run(tmp_path, keeper, "run", "app.py")
    assert starts(tmp_path) == []


AGAIN = """
import asyncio, os, sys
import loopcanary

asyncio.run(asyncio.sleep(0.01))
loopcanary.uninstall()
loopcanary.install()
asyncio.run(asyncio.sleep(0.01))
if len(sys.argv) == 1:
    print("once", flush=True)
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print("again")
"""


@pytest.mark.parametrize("options", [(), ("--startup",)], ids=["short", "whole"])
def test_what_a_process_becomes_later_is_no_start(tmp_path, options):
    """Another engine in it, or another program."""
    (tmp_path / "app.py").write_text(AGAIN)
    done = run(tmp_path, "1", "run", *options, "app.py")
    assert done.stdout.split() == ["once", "again"]
    assert "startup" not in done.stderr
    assert len(starts(tmp_path)) <= 1


COLLECTS = """
import gc, os, time
heap = [[] for _ in range(300_000)]
ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
started_s, spent_s = ticks / os.sysconf("SC_CLK_TCK"), 0
# A third of the start, however long a busy machine made the rest.
while 3 * spent_s < time.clock_gettime(time.CLOCK_BOOTTIME) - started_s:
    began_s = time.monotonic()
    gc.collect()
    spent_s += time.monotonic() - began_s
"""


def test_collections_of_a_start_are_counted_until_its_end(tmp_path):
    (tmp_path / "app.py").write_text(COLLECTS)
    done = run(tmp_path, "0", "run", "--startup", "app.py")
    assert done.returncode == 0, done.stderr
    [start] = starts(tmp_path)
    assert "garbage collections took" in start["advice"]


@pytest.mark.parametrize(("option", "is_unfrozen"), [("on", "False"), ("off", "True")])
def test_it_is_known_whether_python_s_modules_are_frozen(option, is_unfrozen):
    words = (sys.executable, "-X", f"frozen_modules={option}", "-c")
    code = "from loopcanary.facts import is_unfrozen; print(is_unfrozen())"
    done = subprocess.run((*words, code), capture_output=True, text=True, timeout=GIVES_UP_S, check=True)
    assert done.stdout.strip() == is_unfrozen
