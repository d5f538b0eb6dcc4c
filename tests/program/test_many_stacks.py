"""What a stall does last counts as much as what it did first, however many stacks were kept before."""

from __future__ import annotations

import pytest

from .watching import GIVES_UP_S, PROGRAMS, Marks

pytestmark = pytest.mark.native


def test_a_long_end_after_many_stacks_is_the_culprit(watched):
    program = PROGRAMS / "many_stacks.py"
    under = watched()
    with under.start(program, variables={"LOOPCANARY_SAMPLE_INTERVAL": "1ms"}) as running:
        assert running.wait(GIVES_UP_S) == 0

    stall = max(under.report()["stalls"], key=lambda one: one["duration_ms"])
    assert (stall["culprit"]["function"], stall["culprit"]["line"]) == Marks(program.read_text()).find(
        "culprit"
    )
    assert stall["cause"] == "sleep"
    (session,) = under.report()["sessions"]
    assert session["statistics"]["samples_dropped_full"] == 0
