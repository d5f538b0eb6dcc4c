"""uvloop's loops under the portable engine."""

from __future__ import annotations

import pytest
from tests.program.watching import PROGRAMS, Watched, not_by_the_host

PROGRAM = """
import asyncio, sys, time
import loopcanary, uvloop
sys.path.insert(0, sys.argv[2])
from blocking import until_sampled

def blocks():
    for seconds in until_sampled(0.5):
        time.sleep(seconds)

async def main():
    await asyncio.sleep(0.01)
    blocks()
    await asyncio.sleep(0.01)

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
if sys.argv[1] == "uninstalled":
    loopcanary.uninstall()
    assert "run_forever" not in vars(uvloop.Loop)
"""


@pytest.mark.parametrize("at_the_end", ["installed", "uninstalled"])
def test_a_block_is_a_stall_at_its_line(tmp_path, at_the_end):
    pytest.importorskip("uvloop")
    watched = Watched(store=tmp_path / "store", engine="portable")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    watched.run(program, at_the_end, PROGRAMS, cwd=tmp_path)
    stalls = not_by_the_host(watched.report()["stalls"])
    (stall,) = [stall for stall in stalls if (stall["culprit"] or {}).get("function") == "blocks"]
    assert stall["culprit"]["source"].strip() == "time.sleep(seconds)"
    assert stall["loop"] in ("asyncio", "uvloop")
