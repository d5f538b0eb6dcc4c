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
    # Until the test lets it go on; `--quiet`: for so long.
    python = ctypes.PyDLL(None)
    python.read(0, ctypes.create_string_buffer(1), 1) if sys.argv[2:] else python.usleep(2_000_000)

def free():
    while not os.path.exists("over"):
        time.sleep(0.05)

async def main():
    await asyncio.sleep(0)
    globals()[sys.argv[1]]()

asyncio.run(main())
"""


def begun(place: Place, *words: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    program = place.program(HANG)
    run = [sys.executable, "-m", "loopcanary", "run", "--store", str(place.store), *options]
    return subprocess.Popen(
        [*run, str(program), *words],
        env=place.plain(LOOPCANARY_KEEPER="0"),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.folder,
    )


def line_with(program: subprocess.Popen[str], words: str) -> str:
    """The first of stderr; on a busy machine there may be stalls before."""
    assert program.stderr is not None
    while words not in (line := program.stderr.readline()):
        assert line
    return line


def test_c_code_that_holds_the_gil_is_named_while_it_does(place: Place):
    line = len((PRELUDE + HANG).split("    python.read", maxsplit=1)[0].splitlines()) + 1
    program = begun(place, "held", "until told")
    said = line_with(program, "[loopcanary] blocked for ")
    assert said.endswith(f" s in program.py:{line}, held\n")
    program.communicate("!", timeout=GIVES_UP_S)


def test_without_a_console_nothing_is_said(place: Place):
    program = begun(place, "held", options=("--quiet",))
    assert "blocked for" not in program.communicate(timeout=GIVES_UP_S)[1]


def test_a_hang_is_judged_while_it_lasts(place: Place):
    program = begun(place, "free")
    # Whatever it blames: a busy host may not have run it for most of the time.
    line_with(program, "still in progress")
    (place.folder / "over").touch()
    assert "ended after " in program.communicate(timeout=GIVES_UP_S)[1]
