"""The bugs that are known already: those of a store, a bundle, a JSON report, or one that git has."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopcanary.model.search import IssueQuery
from loopcanary.wire.known import bugs_named

if TYPE_CHECKING:
    from loopcanary.model import Issue, Session

_GIT_S = 30


def known_bugs(named: str) -> frozenset[str]:
    """Fingerprints of all bugs of a baseline.

    Args:
        named: folder of a store; file of a bundle or of `report --format json`; or such a report as git has
            it: `main:stalls.json`.

    Raises:
        UsageError: there is no baseline, or it cannot be read; StoreError, BundleError.
    """
    path = Path(named)
    if path.is_dir():
        return _of_store(path)
    if path.is_file():
        return _of_bundle(path) if zipfile.is_zipfile(path) else _of_report(_read(path), named)
    if ":" in named:
        return _of_report(_shown_by_git(named), named)
    raise click.UsageError(
        f"there is no baseline {named}: name a store, a bundle, or a file of `report --format json`"
    )


def _of_store(folder: Path) -> frozenset[str]:
    from loopcanary.assembly.store import open_store
    from loopcanary.config import load
    from loopcanary.store import may_be_store

    if not may_be_store(folder):
        raise click.UsageError(f"the baseline {folder} is no store")
    store = open_store(folder, load(store=folder))
    store.open()
    try:
        return frozenset(group.fingerprint for group in store.reader.groups(IssueQuery(), 0))
    finally:
        store.close()


class _Fingerprints:
    """See bundles.reading.Taker."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def add_issue(self, issue: Issue) -> None:
        self.found.add(issue.fingerprint)

    def add_session(self, session: Session) -> None:
        """Runs have no bug of their own."""

    def add_remark(self, fingerprint: str, remark: object) -> None:
        """Nor have remarks."""


def _of_bundle(path: Path) -> frozenset[str]:
    from loopcanary.bundles import read_bundle

    taker = _Fingerprints()
    read_bundle(path, taker, now_wall_ns=0)
    return frozenset(taker.found)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.UsageError(f"the baseline {path} cannot be read: {error.strerror}") from error


def _shown_by_git(named: str) -> bytes:
    try:
        shown = subprocess.run(["git", "show", named], capture_output=True, timeout=_GIT_S, check=False)  # noqa: S603, S607
    except (OSError, subprocess.SubprocessError) as error:
        raise click.UsageError(f"git could not be asked for the baseline {named}: {error}") from error
    if shown.returncode:
        said = shown.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise click.UsageError(f"git has no baseline {named}: {said[0]}")
    return shown.stdout


def _of_report(content: bytes, named: str) -> frozenset[str]:
    try:
        return frozenset(bugs_named(content))
    except ValueError as error:
        raise click.UsageError(
            f"the baseline {named} is no report: make one with `loopcanary report --format json --limit 0`"
        ) from error
