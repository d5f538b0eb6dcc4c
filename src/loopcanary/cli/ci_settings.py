"""The table `[tool.loopcanary.ci]`: the budget, the baseline, the files to write."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field
from typing import Any

import click

from loopcanary.cli.refusals import refuse
from loopcanary.config.files import TRUST, find_settings_file
from loopcanary.late_dataclass import dataclass
from loopcanary.model.units import parse_duration_ns
from loopcanary.report.ci.budget import Budget
from loopcanary.words.text import printable

WRITTEN = ("html", "sarif", "markdown", "junit")
"""Formats of further files; the key's value is the file's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiSettings:
    """Paths as written, from the current folder."""

    budget: Budget = field(default_factory=Budget)
    baseline: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    """By format."""


def ci_settings(folder: str) -> CiSettings:
    """The table of the settings file in force in the folder; of a file that another user can change only the
    budget. UsageError: it cannot be used. ConfigError: it cannot be read."""
    file = find_settings_file(folder, os.environ.get(TRUST))
    table = {} if file is None else file.settings.get("ci", {})
    place = "" if file is None else file.place("ci")
    if not isinstance(table, dict):
        raise click.UsageError(f"{place} = {table!r} is not a table")
    if file is not None and not file.is_believed and (left := table.keys() & {"baseline", *WRITTEN}):
        refuse(printable(file.not_taken(f"ci.{key}" for key in sorted(left))))
        table = {key: value for key, value in table.items() if key not in left}
    read = _CiTable(table, place)
    found = CiSettings(
        budget=Budget(
            p99_delay_ns=read.take("p99_delay", _duration),
            longest_stall_ns=read.take("longest_stall", _duration),
            stalled_share=read.take("stalled_share", _share),
            startup_ns=read.take("startup", _duration),
            new_bugs=read.take("new_bugs", _count),
        ),
        baseline=read.take("baseline", _text),
        files={form: path for form in WRITTEN if (path := read.take(form, _text)) is not None},
    )
    read.refuse_others()
    return _from(folder if file is None else os.path.dirname(file.path), found)  # noqa: PTH120 - as the file has it


def _from(folder: str, found: CiSettings) -> CiSettings:
    """Makes paths start at the file's folder."""

    def path(text: str) -> str:
        return os.path.join(folder, text)  # noqa: PTH118 - as above

    baseline = found.baseline
    if baseline is not None and ":" not in baseline:
        baseline = path(baseline)
    files = {form: path(text) for form, text in found.files.items()}
    return CiSettings(budget=found.budget, baseline=baseline, files=files)


class _CiTable:
    """Takes values out of the table, and refuses the rest."""

    def __init__(self, table: dict[str, Any], place: str) -> None:
        self._left = dict(table)
        self._known: list[str] = []
        self._place = place

    def take(self, key: str, read: Callable[[Any], Any]) -> Any:
        """The value; None where there is none."""
        self._known.append(key)
        if key not in self._left:
            return None
        value = self._left.pop(key)
        try:
            return read(value)
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"{self._place}.{key} = {value!r} cannot be used: {error}") from None

    def refuse_others(self) -> None:
        for key in self._left:
            raise click.UsageError(
                f"{self._place}.{key} is not a setting: use one of {', '.join(self._known)}"
            )


def _duration(value: Any) -> int:
    if not isinstance(value, str):
        raise TypeError('write a duration such as "200ms"')
    return parse_duration_ns(value)


def _share(value: Any) -> float:
    number = float(value[:-1]) / 100 if isinstance(value, str) and value.endswith("%") else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 1:
        raise ValueError('write a share such as "0.5%" or 0.005')
    return float(number)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("write a whole number, 0 or more")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("write a path")
    return value
