"""The walker samples every thread at 1 kHz and more while they all do their worst."""

from __future__ import annotations

import gc
import os
import sys
from types import ModuleType

import pytest

from . import churn

SECONDS = float(os.environ.get("LOOPCANARY_CHURN_SECONDS", "2"))


@pytest.mark.parametrize(
    ("cpu_clock", "deaths"),
    [(True, True), (False, True), (True, False)],
    ids=["with the CPU clock", "by agreement alone", "with no death counted"],
)
def test_no_sampled_stack_never_existed(probe: ModuleType, cpu_clock: bool, deaths: bool) -> None:
    # Callbacks of other tools (hypothesis has one) run in the churning threads: frames that did exist, but
    # that the judge cannot know.
    # So do finalizers of what other tests have left behind.
    gc.collect()
    foreign = gc.callbacks[:]
    gc.callbacks.clear()
    probe.use_cpu_clock(cpu_clock)
    assert probe.watch_deaths()
    if not deaths:
        probe.leave_deaths()
    try:
        outcome = churn.run(probe, SECONDS)
    finally:
        gc.callbacks.extend(foreign)
        probe.use_cpu_clock(True)
        probe.watch_deaths()
    print(sys.version.split()[0], outcome.figures)  # noqa: T201 - the figures of a long run are its result
    assert outcome.faults == []
    assert outcome.figures["judged"] > 0
    assert (outcome.figures["codes_trusted"] > 0) == deaths
    assert outcome.figures["ok"] > 500
    assert outcome.figures["unreadable"] + outcome.figures["moved"] < outcome.figures["ok"]
