"""Every hook comes and goes while it is in use, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROGRAM = Path(__file__).with_name("under_load.py")
CYCLES = os.environ.get("LOOPCANARY_CYCLES", "4")
"""`make cycles` has hundreds: a race shows once in thousands of pieces of work."""
LOOPS = ("asyncio", "uvloop", "trio", "gevent", "pyside6", "pyqt6", "tk", "glib", "pygame")
LOADS = {
    "loops_in_threads": (),
    "answers": (),
    "gobject_signals": ("glib",),
    "imports": (),
    "collections": (),
    "forks": (),
    "work": (),
    "code": (),
    "requests": ("flask",),
    "twisted": ("twisted",),
}

pytestmark = pytest.mark.native


@pytest.fixture(scope="module")
def here():
    """What the zoo knows of this machine, with a screen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from zoo import here

        with here.screen():
            yield here


def run(load, tmp_path, **variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", PROGRAM, load, CYCLES, tmp_path / "store"],
        env=clean | variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_runs_on_as_before(here, tmp_path, loop):
    _, missing = here.look(loop)
    if missing:
        pytest.skip(missing)
    run("loop", tmp_path, **here.environment(loop, tmp_path))


@pytest.mark.parametrize("load", LOADS)
def test_other_hooks_leave_nothing_behind(here, tmp_path, load):
    variables = {}
    for needed in LOADS[load]:
        if needed == "glib":
            if missing := here.look(needed)[1]:
                pytest.skip(missing)
            variables = here.environment(needed, tmp_path)
        else:
            pytest.importorskip(needed)
    run(load, tmp_path, **variables)
