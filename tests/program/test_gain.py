"""What the report promises of a bug's end is what its end brings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .watching import PROGRAMS, Marks, Watched

pytestmark = pytest.mark.native

TWO_BLOCKS = PROGRAMS / "two_blocks.py"
LEFT_MS = 200
TOLERANCE_MS = 0.2 * LEFT_MS


def test_without_the_named_line_the_delay_is_as_promised(
    watched: Callable[..., Watched], tmp_path: Path
) -> None:
    source = TWO_BLOCKS.read_text()
    _, number = Marks(source).find("culprit of turn")
    before, after = watched(), Watched(store=tmp_path / "after", engine="native")
    late_ms = milliseconds_late(before, TWO_BLOCKS)
    places = {(group["culprit"] or {}).get("line"): group for group in before.report()["groups"]}
    [gain] = places[number]["gains"]
    mended = tmp_path / "two_blocks.py"
    mended.write_text("".join(line for line in source.splitlines(True) if not line.endswith("# culprit\n")))
    late_ms += milliseconds_late(after, mended)
    [measured] = [loop for run in after.report()["sessions"] for loop in run["loops"]]
    # A busy host prolongs blocks, and a stall that it prolonged by half is no longer the line's.
    may_differ_ms = TOLERANCE_MS + 2 * late_ms
    assert gain["p99_without_ms"] == pytest.approx(measured["delay_ms"]["p99"], abs=may_differ_ms)


def milliseconds_late(program: Watched, path: Path) -> float:
    return 1_000 * float(program.run(path).stdout)
