"""Many runs' scores as one row: shares, and what loopcanary is to reach."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from zoo.scoring import Score
from zoo.trial import Trial


@dataclass(frozen=True, slots=True)
class Figure:
    """A share of runs, or a number, and whether it reaches its target where it has one."""

    text: str
    reached: bool | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table of totals."""

    title: str
    of: Callable[[Sequence[Trial]], tuple[float, str] | None]
    """The figure, as a number and in words; None where nothing was judged."""
    reaches: Callable[[float], bool]
    target: str


def _share(name: str) -> Callable[[Sequence[Trial]], tuple[float, str] | None]:
    def share(trials: Sequence[Trial]) -> tuple[float, str] | None:
        return _part([value for trial in trials if (value := getattr(trial.score, name)) is not None])

    return share


def _part(judged: Sequence[bool]) -> tuple[float, str] | None:
    if not judged:
        return None
    percent = sum(judged) * 100 // len(judged)  # 299 of 300 are not all
    return sum(judged) / len(judged), f"{percent}% of {len(judged)}"


def _one_bug(trials: Sequence[Trial]) -> tuple[float, str] | None:
    return _part([len(set(bugs)) == 1 for bugs in bugs_of(trials).values() if len(bugs) > 1])


def bugs_of(trials: Sequence[Trial]) -> dict[tuple[str, str], list[str]]:
    """By kind and loop, what each run was counted under."""
    bugs: dict[tuple[str, str], list[str]] = {}
    for trial in trials:
        if trial.score.bug is not None:
            bugs.setdefault((trial.kind, trial.loop), []).append(trial.score.bug)
    return bugs


def _median_error(trials: Sequence[Trial]) -> tuple[float, str] | None:
    errors = [trial.score.duration_error_ms for trial in trials if trial.score.duration_error_ms is not None]
    if not errors:
        return None
    median = statistics.median(errors)
    return median, f"{median:.0f} ms" if median >= 10 else f"{median:.2g} ms"


def _alarms(trials: Sequence[Trial]) -> tuple[float, str] | None:
    judged = [trial.score.false_alarms for trial in trials if trial.score.false_alarms is not None]
    return (sum(judged), f"{sum(judged)} in {len(judged)}") if judged else None


COLUMNS = (
    Column("detected", _share("detected"), lambda share: share == 1, "100 %"),
    Column("function", _share("function"), lambda share: share >= 0.99, ">= 99 %"),
    Column("line", _share("line"), lambda share: share >= 0.99, ">= 99 %"),
    Column("cause", _share("cause"), lambda share: share >= 0.97, ">= 97 %"),
    Column("best word", _share("best"), lambda share: share >= 0.94, ">= 94 %"),
    Column("guilty thread", _share("holder"), lambda share: share >= 0.98, ">= 98 %"),
    Column("one bug", _one_bug, lambda share: share == 1, "100 %"),
    Column("advice", _share("advice"), lambda share: share >= 0.95, ">= 95 %"),
    Column("duration right", _share("duration_right"), lambda share: share == 1, "100 %"),
    Column("median error", _median_error, lambda error: error <= 2, "<= 2 ms"),
    Column("false alarms", _alarms, lambda count: count == 0, "0"),
    Column("line after SIGKILL", _share("survived"), lambda share: share == 1, "100 %"),
)


def row(trials: Sequence[Trial], *, judged_by_targets: bool) -> list[Figure]:
    """One watcher's figures, in the order of COLUMNS."""
    played = [trial for trial in trials if trial.outcome == "played"]
    return [_figure(column, played, judged_by_targets=judged_by_targets) for column in COLUMNS]


def _figure(column: Column, trials: Sequence[Trial], *, judged_by_targets: bool) -> Figure:
    found = column.of(trials)
    if found is None:
        return Figure("-")
    value, text = found
    return Figure(text, column.reaches(value) if judged_by_targets else None)


LEVELS = ("-", "D", "F", "L")


def cell(trials: Sequence[Trial]) -> str:
    """One kind under one watcher in a few letters; see LEGEND."""
    played = [trial.score for trial in trials if trial.outcome == "played"]
    if not trials:
        return ""
    if not played:
        return {"skipped": "n/a", "failed": "!"}[trials[0].outcome]
    if all(score.detected is None for score in played):
        alarms = [score.false_alarms for score in played if score.false_alarms is not None]
        return "?" if not alarms else str(sum(alarms)) if any(alarms) else "0"
    levels = sorted({_level(score) for score in played})
    text = "/".join(LEVELS[level] for level in reversed(levels))
    return (
        text
        + ("c" if _always(score.cause for score in played) else "")
        + ("t" if _always(score.holder for score in played) else "")
    )


def _always(values: Iterable[bool | None]) -> bool:
    judged = [value for value in values if value is not None]
    return bool(judged) and all(judged)


def _level(score: Score) -> int:
    return 3 if score.line else 2 if score.function else 1 if score.detected else 0


LEGEND = (
    "L: the culprit's line is told, F: its function only, D: the stall only, -: nothing; L/D: runs differ. "
    "c: the cause is right, t: the guilty thread is told, by name and function. Of controls (ok-...) the "
    "number of false alarms. ?: the machine disturbed every run; n/a: not possible here; "
    "!: the program failed."
)
