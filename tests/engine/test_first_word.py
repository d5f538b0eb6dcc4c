"""The first word of a hang where the program judges itself, and C code holds the GIL."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .watching import GIVES_UP_S, PRELUDE, Place

pytestmark = pytest.mark.native

HANG = """
import ctypes

def held():
    ctypes.PyDLL(None).usleep(2_000_000)

def free():
    while not os.path.exists("over"):
        time.sleep(0.05)

async def main():
    await asyncio.sleep(0)
    globals()[sys.argv[1]]()

asyncio.run(main())
"""


def begun(place: Place, function: str, *options: str) -> subprocess.Popen[str]:
    program = place.program(HANG)
    words = [sys.executable, "-m", "loopcanary", "run", "--store", str(place.store), *options]
    return subprocess.Popen(
        [*words, str(program), function],
        env=place.plain(LOOPCANARY_KEEPER="0"),
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.folder,
    )


def stderr_of(place: Place, function: str, *options: str) -> str:
    return begun(place, function, *options).communicate(timeout=GIVES_UP_S)[1]


def test_c_code_that_holds_the_gil_is_named_while_it_does(place: Place):
    line = len((PRELUDE + HANG).split("    ctypes.PyDLL", maxsplit=1)[0].splitlines()) + 1
    first, *_ = stderr_of(place, "held").splitlines()
    assert first.startswith("[loopcanary] blocked for 1.")
    assert first.endswith(f" s in program.py:{line}, held")


def test_without_a_console_nothing_is_said(place: Place):
    assert "blocked for" not in stderr_of(place, "held", "--quiet")


def test_a_hang_is_judged_while_it_lasts(place: Place):
    program = begun(place, "free")
    assert program.stderr is not None
    while " s and still in progress, sleep" not in (line := program.stderr.readline()):
        assert line
    (place.folder / "over").touch()
    assert "over after " in program.communicate(timeout=GIVES_UP_S)[1]
