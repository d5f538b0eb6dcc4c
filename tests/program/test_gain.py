"""What the report promises of a bug's end is what its end brings.

Both are held against the program's own clock, which also sees what a busy machine added to its blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from .watching import PROGRAMS, Marks, Watched

pytestmark = pytest.mark.native

TWO_BLOCKS = PROGRAMS / "two_blocks.py"
TOLERANCE = 0.2


def test_without_the_named_line_the_delay_is_as_promised(
    watched: Callable[..., Watched], tmp_path: Path
) -> None:
    source = TWO_BLOCKS.read_text()
    _, number = Marks(source).find("culprit of turn")
    before, after = watched(), Watched(store=tmp_path / "after", engine="native")
    whole_ms, left_ms = delays_ms(before, TWO_BLOCKS)
    places = {(group["culprit"] or {}).get("line"): group for group in before.report()["groups"]}
    [gain] = places[number]["gains"]
    assert gain["p99_ms"] == pytest.approx(whole_ms, rel=TOLERANCE / 2)
    assert gain["p99_without_ms"] == pytest.approx(left_ms, rel=TOLERANCE)
    mended = tmp_path / "two_blocks.py"
    mended.write_text("".join(line for line in source.splitlines(True) if not line.endswith("# culprit\n")))
    mended_ms, _ = delays_ms(after, mended)
    [measured] = [loop for run in after.report()["sessions"] for loop in run["loops"]]
    assert measured["delay_ms"]["p99"] == pytest.approx(mended_ms, rel=TOLERANCE / 2)


def delays_ms(program: Watched, path: Path) -> tuple[float, float]:
    """How long events waited at most, but for one in a hundred: as it ran, and without the first part of each
    turn, by the program's own clock."""
    told = json.loads(program.run(path).stdout)
    whole, left = [first + second for first, second in told["turns"]], [second for _, second in told["turns"]]
    return 1_000 * p99(whole, told["window_s"]), 1_000 * p99(left, told["window_s"])


def p99(turns: Sequence[float], window: float) -> float:
    """The x that so much of the turns is beyond: a hundredth of the window."""
    longest = sorted(turns, reverse=True)
    found = [(sum(longest[:count]) - window / 100) / count for count in range(1, len(longest) + 1)]
    return max(found)
