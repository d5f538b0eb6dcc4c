"""What the tests of loops share: a program goes through the ways to block, and each is a stall of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.program.test_detection import Run
from tests.program.watching import admitted, is_by_the_host

SHARED = (
    *("regex", "password_hash", "collection", "python_loop", "slow_import", "sleep", "held_lock"),
    *("child_process", "gil_hog"),
)
"""Blocks of tests/program/programs/blocks.py that every loop's program borrows: one of each way to block."""
if os.environ.get("LOOPCANARY_FULL") == "1":
    SHARED += ("json_body", "c_call_with_the_gil", "c_call_without_the_gil", "compress")
    SHARED += ("empty_queue", "thread_join", "synced_file")

TOLERANCE_MS = 2.0


class BlockedRun(Run):
    """One run of a program: by the file in which it wrote down the truth, and by the report."""

    def __init__(self, truth_file: Path, report: dict[str, Any]) -> None:
        self.tolerance_ms = TOLERANCE_MS
        self.truth = {facts["name"]: facts for facts in json.loads(truth_file.read_text())}
        self.report = report
        self.stalls = report["stalls"]

    def others(self) -> list[dict[str, Any]]:
        """The stalls that no kind of block has a part in."""
        known = {stall["id"] for kind in self.truth for stall in self.stalls_of(kind)}
        return [stall for stall in self.stalls if stall["id"] not in known]


def assert_length(run: BlockedRun, kind: str) -> dict[str, Any]:
    """The stall of this kind, as long as the program says."""
    stall, facts = run.stall_of(kind), run.truth[kind]
    assert stall["duration_ms"] < (facts["after_ns"] - facts["before_ns"]) / 1e6 + TOLERANCE_MS
    assert stall["duration_ms"] > (facts["end_ns"] - facts["begin_ns"]) / 1e6 - TOLERANCE_MS
    return stall


def is_explained(stall: Mapping[str, Any]) -> bool:
    """By the host, by what the program prepares on its other thread, which computes with the GIL, or by its
    own collection between two kinds, which takes as long as there are young objects."""
    if stall["cause"] == "gc" and (stall["culprit"] or {}).get("source") == "gc.collect(0)":
        return True
    holder = stall["holder"]
    is_preparing = holder is not None and holder["thread"].startswith("ThreadPoolExecutor")
    return is_preparing or is_by_the_host(stall) or "host" in admitted(stall, (stall["cause"],))


def assert_paused(loop: Mapping[str, Any], stalls: Iterable[Mapping[str, Any]], paused_ms: float) -> None:
    """The loop of a program in which nothing blocks was not busy in its pauses. `stalls`: of the host, which
    may have come in a pause, too."""
    by_the_host_ms = sum(stall["duration_ms"] for stall in stalls)
    assert loop["busy_ms"] - by_the_host_ms < loop["window_ms"] - paused_ms
