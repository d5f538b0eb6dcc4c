"""`loopcanary.no_stall`, in programs of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.program.watching import PROGRAMS

PROGRAM = (
    f"""
import sys
sys.path.append({str(PROGRAMS)!r})
"""
    """
import asyncio, time
import loopcanary
from blocking import until_sampled

async def slow():
    await asyncio.sleep(0)
    for seconds in until_sampled(0.4):  # a busy machine makes other stalls, of the host
        time.sleep(seconds)

async def quick():
    await asyncio.sleep(0.4)

async def inside(work):
    async with loopcanary.no_stall("300ms"):
        await work()

def around(work):
    with loopcanary.no_stall("300ms"):
        asyncio.run(work())

async def with_in_a_loop():
    with loopcanary.no_stall("300ms"):
        pass

async def fails():
    await slow()
    raise KeyError("its own")

def watched():
    loopcanary.install()
    around(quick)

"""
)


@pytest.mark.parametrize(
    ("call", "raises"),
    [
        ("around(slow)", "AssertionError: [loopcanary] "),
        ("asyncio.run(inside(slow))", "AssertionError: [loopcanary] "),
        ("around(quick)", ""),
        ("asyncio.run(inside(quick))", ""),
        ("around(quick); around(slow)", "AssertionError: [loopcanary] "),
        ("around(fails)", "KeyError: 'its own'"),
        ("asyncio.run(with_in_a_loop())", "RuntimeError: a loop runs here: in coroutines use `async with"),
        ("watched()", "RuntimeError: this process is already watched"),
        ("loopcanary.no_stall('soon')", "ValueError: no_stall: 'soon' is not a duration"),
    ],
)
def test_a_block_that_stalls_raises_the_verdict(tmp_path: Path, call: str, raises: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM) + call + "\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == bool(raises), done.stderr
    assert raises in done.stderr
    if "Assertion" in raises:
        assert "time.sleep(seconds)" in done.stderr
        assert "asyncio.sleep" in done.stderr
