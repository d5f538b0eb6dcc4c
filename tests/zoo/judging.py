"""One run of a kind of the zoo under loopcanary, and what was told wrong of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from zoo import catalogue, page, trial
from zoo.scoring import Score


def assert_told_as_it_is(path: Path, loop: str) -> None:
    """All but how exact the duration is: that is for a machine that does nothing else (benchmarks/zoo), and
    for what knows when it was not run (tests/program/test_detection.py)."""
    kind = catalogue.read(path)
    found = trial.play(kind, "loopcanary", loop)
    assert found.outcome == "played", found.note
    judged = replace(found, score=replace(found.score, duration_right=None))
    if found.disturbed:  # cause and holder are the machine's as well
        judged = replace(judged, score=replace(judged.score, cause=None, best=None, holder=None))
    if found.reports and not any(report.frames for report in found.reports):
        # Not once looked at: the watchdog had no core meanwhile.
        judged = replace(judged, score=Score(detected=found.score.detected, survived=found.score.survived))
    missed = page.misses([judged], [kind])
    assert not missed, "; ".join(missed)
