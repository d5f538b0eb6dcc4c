"""Results on disk: one JSON file, to which runs of other watchers or kinds can be added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from zoo.observation import Report
from zoo.scoring import Score
from zoo.trial import Trial


def write(path: Path, trials: Sequence[Trial], about: dict[str, Any]) -> None:
    """Writes them; a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"about": about, "trials": [asdict(trial) for trial in trials]}, indent=1))
    new.replace(path)


def read(path: Path) -> tuple[list[Trial], dict[str, Any]]:
    """What write wrote; nothing where there is no file."""
    if not path.exists():
        return [], {}
    data = json.loads(path.read_text())
    return [_trial(one) for one in data["trials"]], data["about"]


def added(
    these: tuple[list[Trial], dict[str, Any]], others: tuple[list[Trial], dict[str, Any]]
) -> tuple[list[Trial], dict[str, Any]]:
    """Both together; where both played the same, the others."""
    trials, about = others
    kept = without(these[0], [(trial.kind, trial.watcher, trial.loop) for trial in trials])
    loops = {"loops": these[1].get("loops", {}) | about.get("loops", {})}
    return kept + trials, (these[1] or about) | loops


def without(trials: Iterable[Trial], replaced: Iterable[tuple[str, str, str]]) -> list[Trial]:
    """Those that are not of these (kind, watcher, loop)."""
    gone = set(replaced)
    return [trial for trial in trials if (trial.kind, trial.watcher, trial.loop) not in gone]


def _trial(data: dict[str, Any]) -> Trial:
    return Trial(
        **data
        | {
            "reports": [Report.from_json(report) for report in data["reports"]],
            "score": Score(**data["score"]),
        }
    )
