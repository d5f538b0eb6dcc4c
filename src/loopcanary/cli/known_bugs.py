"""The bugs of a baseline, those that it lacks, and bugs as CI systems read them."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Collection
from pathlib import Path

import click

from loopcanary.cli.output import made_by, opened_output
from loopcanary.cli.refusals import refuse
from loopcanary.facts import working_folder
from loopcanary.model import Issue, Session
from loopcanary.model.search import IssueGroup, IssueQuery
from loopcanary.model.stall import Cause
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.model import Report
from loopcanary.wire.known import bugs_named
from loopcanary.words.text import count_of, printable

_GIT_S = 30


def known_bugs(named: str) -> frozenset[str]:
    """Fingerprints of all bugs of a baseline.

    Args:
        named: a store, a bundle, a file of `report --format json`, or such a file as git has it,
            `main:stalls.json`.

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
        raise click.UsageError(f"the baseline {folder} is not a store")
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
        """Runs are not bugs."""

    def add_remark(self, fingerprint: str, remark: object) -> None:
        """Remarks are not bugs."""


def _of_bundle(path: Path) -> frozenset[str]:
    from loopcanary.bundles.reading import read_bundle

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
        raise click.UsageError(f"git could not be run for the baseline {named}: {error}") from error
    if shown.returncode:
        said = shown.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise click.UsageError(f"git has no baseline {named}: {said[0]}")
    return shown.stdout


def _of_report(content: bytes, named: str) -> frozenset[str]:
    try:
        return frozenset(bugs_named(content))
    except ValueError as error:
        raise click.UsageError(
            f"the baseline {named} is not a report: make one with `loopcanary report --format json --limit 0`"
        ) from error


CI_FORMS = ("github", "sarif", "junit")


def write_bugs(report: Report, known: frozenset[str] | None, form: str, output: str) -> None:
    """Writes the bugs of a report. `known` are those of the baseline; None: there is no baseline."""
    from loopcanary.report.ci import formats
    from loopcanary.report.ci.bugs import Repository, bugs

    found = bugs(report, Repository.around(Path(working_folder())), known or ())
    version = made_by().removeprefix("loopcanary").strip() or "0"
    text = formats.render(form, found, version=version, has_baseline=known is not None)
    with opened_output(output) as out:
        out.write(text.encode("utf-8", "backslashreplace"))


def new_bugs(source: IssueStore, query: IssueQuery, known: Collection[str]) -> list[IssueGroup]:
    """The bugs that are not known. What the host did is not a bug of the program."""
    found = source.groups(query, 0)
    return [one for one in found if one.fingerprint not in known and one.cause is not Cause.HOST]


def tell_new(source: IssueStore, query: IssueQuery, known: Collection[str]) -> bool:
    """Whether there are new bugs; prints one line on stderr if so."""
    new = new_bugs(source, query, known)
    if new:
        worst = f"{printable(new[0].title, 200)} ({new[0].fingerprint})"
        refuse(f"{count_of(len(new), 'new bug')}, the worst: {worst}")
    return bool(new)
