"""The built-in reporters, each with the condition under which a run has it: else its module is not loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.whose_stderr import is_a_child, may_speak

if TYPE_CHECKING:
    from loopcanary.protocols.plugins import Reporter, WatchedRun


def console(run: WatchedRun) -> Reporter | None:
    """For a person who reads the program's stderr."""
    if not run.config.console or run.config.quiet or not may_speak():
        return None
    from loopcanary.reporters.console import ConsoleReporter

    process = f"{run.session.name} (pid {run.session.pid})" if is_a_child() else ""
    return ConsoleReporter(store=Path(run.config.store) if run.config.store else None, process=process)


def log_file(run: WatchedRun) -> Reporter | None:
    """Where the settings name a file."""
    config = run.config
    if config.log_file is None:
        return None
    from loopcanary.reporters.log_file import LogFile

    return LogFile(
        Path(config.log_file), config.log_file_bytes, process=run.session.name, host=run.session.host
    )


def bell(run: WatchedRun) -> Reporter | None:
    """Where the settings ask for it, and stderr is a person's."""
    config = run.config
    if "bell" not in config.notify or not may_speak():
        return None
    from loopcanary.model import IssueKind
    from loopcanary.reporters.bell import Bell

    return Bell(
        from_ns=config.notify_from_ns,
        every_ns=config.notify_every_ns,
        kinds=frozenset(map(IssueKind, config.notify_kinds)),
    )


def exit_status(run: WatchedRun) -> Reporter | None:
    """With `--fail-on-stall`."""
    if not run.config.fail_on_stall:
        return None
    from loopcanary.reporters.exit_status import ExitStatusReporter

    return ExitStatusReporter(run.exit_changer())
