"""The built-in reporters, each with its condition; without it the module is not loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.model import IssueKind
from loopcanary.model.config import ON

if TYPE_CHECKING:
    from loopcanary.protocols.plugins import Reporter, WatchedRun


_PARENTS_MAX = 100
_quiet_of_workers: dict[int | None, dict[str, int]] = {}
"""By their parent: its workers share a stderr, on which a bug comes in full once."""


def console(run: WatchedRun) -> Reporter | None:
    """For a person who reads the program's stderr."""
    screen = run.screen() if run.config.console == ON else None
    if screen is None:
        return None
    from loopcanary.reporters.console import ConsoleReporter

    if len(_quiet_of_workers) > _PARENTS_MAX:
        _quiet_of_workers.clear()
    return ConsoleReporter(
        terminal=screen,
        store=Path(run.config.store) if run.config.store else None,
        folder=run.folder,
        announce_clean=run.is_by_hand,
        process=run.process,
        quiet=_quiet_of_workers.setdefault(run.session.parent_pid, {}) if run.process else {},
    )


def log_file(run: WatchedRun) -> Reporter | None:
    """If the settings name a file."""
    config = run.config
    if config.log_file is None:
        return None
    from loopcanary.reporters.log_file import LogFile

    return LogFile(Path(config.log_file), process=run.session.name, host=run.session.host)


def bell(run: WatchedRun) -> Reporter | None:
    """If the settings ask for it, and a person reads stderr."""
    config = run.config
    screen = run.screen() if "bell" in config.notify else None
    if screen is None:
        return None
    from loopcanary.reporters.bell import Bell

    return Bell(
        terminal=screen,
        from_ns=config.notify_from_ns,
        every_ns=config.notify_every_ns,
        kinds=frozenset(map(IssueKind, config.notify_kinds)),
    )


def exit_status(run: WatchedRun) -> Reporter | None:
    """With `--fail-on-stall`."""
    change = run.exit_changer() if run.config.fail_on_stall else None
    if change is None:
        return None
    from loopcanary.reporters.exit_status import ExitStatusReporter

    return ExitStatusReporter(change)
