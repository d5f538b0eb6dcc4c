"""Bugs for a CI system: each once, with its line in the repository that the job has checked out."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Culprit, Issue, Severity, Stall
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import kind_named
from loopcanary.report.model import Report
from loopcanary.words.causes import cause_words, has_cause
from loopcanary.words.text import count_of, printable

_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""The variables of GitHub and GitLab for it."""
_GIT_S = 30


class Repository:
    """Files below one folder, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = cache(self._place)

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The repository that the folder is in, or the folder itself."""
        for variable in _ROOTS:
            named = os.environ.get(variable)
            if named and folder.is_relative_to(named):
                return cls(Path(named))
        above = (one for one in (folder, *folder.parents) if (one / ".git").exists())
        return cls(next(above, folder))

    def line(self, path: str, number: int) -> str | None:
        """Line `number`, from 1, of the file at this path below the root; None: it cannot be read."""
        lines = self._lines(path)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def _place(self, file: str) -> str | None:
        """The file's path below the root, with `/`; None: no file there, or not only one, can be it."""
        whole = Path(os.path.normpath(self.root / file))
        if whole.is_relative_to(self.root) and whole.is_file():
            return whole.relative_to(self.root).as_posix()
        parts = PurePosixPath(file.replace("\\", "/")).parts
        alike = (
            [(_common_end(parts, other), other) for other in self._by_name.get(parts[-1], ())]
            if parts
            else []
        )
        longest = max((length for length, _ in alike), default=0)
        best = [other for length, other in alike if length == longest]
        return "/".join(best[0]) if len(best) == 1 else None

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, ...]]]:
        """The files that git knows, by their last part; empty without git."""
        found = defaultdict(list)
        for path in _tracked(self.root):
            parts = tuple(path.split("/"))
            found[parts[-1]].append(parts)
        return found

    @cache  # noqa: B019 - one repository a command
    def _lines(self, path: str) -> list[str]:
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []


def _tracked(root: Path) -> list[str]:
    git = ["git", "-C", str(root), "ls-files", "-z", "--", "*.py"]
    try:
        answer = subprocess.run(git, capture_output=True, timeout=_GIT_S, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    return os.fsdecode(answer.stdout).split("\0")[:-1]


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """The number of last parts that two paths share."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_TITLE_MAX = 300
_TEXT_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    path: str
    """The path below the root, with `/`."""
    line: int
    """From 1; 0: unknown."""
    function: str
    column: int = 0
    """The column of the call, from 1, in characters; 0: unknown."""
    end_column: int = 0
    """The column after the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    fingerprint: str
    rule: str
    """Kind and cause: `stall/sleep`."""
    rule_words: str
    severity: Severity
    title: str
    details: str
    """Sentences: how often, how long, and what it waited for."""
    advice: str | None
    spot: Spot | None
    """None: none of its frames lies in the repository."""
    steps: tuple[Spot, ...]
    """The frames that lie in the repository, outermost first."""
    count: int
    total_ns: int
    max_ns: int
    is_known: bool

    @property
    def words(self) -> str:
        return f"{self.details} Try: {self.advice}" if self.advice else self.details


def bugs(report: Report, repository: Repository, known: Collection[str] = ()) -> list[Bug]:
    """The bugs of a report, which has the longest issue of each: new ones first, in the report's order.
    `known` are fingerprints of the baseline."""
    found = [
        _bug(group, report.worst.get(group.fingerprint), repository, known)
        for group in (*report.groups, *report.issue_groups)
    ]
    return sorted(found, key=lambda one: one.is_known)


def _bug(group: IssueGroup, worst: Issue | None, repository: Repository, known: Collection[str]) -> Bug:
    words = kind_named(group.kind).words
    steps = tuple(_steps(worst, repository))
    spot = _spot(group.blamed, repository) or (steps[-1] if steps else None)
    return Bug(
        fingerprint=group.fingerprint,
        rule=f"{group.kind.value}/{group.cause.value}" if has_cause(group) else group.kind.value,
        rule_words=f"{words}: {cause_words(group.cause)}" if has_cause(group) else words,
        severity=Severity.STALL if worst is None else worst.severity,
        title=printable(group.title, _TITLE_MAX),
        details=_details(group, worst, words),
        advice=printable(group.advice, _TEXT_MAX) if group.advice else None,
        spot=spot,
        steps=steps,
        count=group.count,
        total_ns=group.total_ns,
        max_ns=group.max_ns,
        is_known=group.fingerprint in known,
    )


def _details(group: IssueGroup, worst: Issue | None, words: str) -> str:
    counted = count_of(group.count, words)
    if not group.max_ns:
        return f"{counted}."
    held = f"{counted}, {format_duration(group.total_ns)} in all, the longest {format_duration(group.max_ns)}"
    if not has_cause(group):
        return f"{held}."
    cause = cause_words(group.cause, worst if isinstance(worst, Stall) else None)
    return f"{held}: {cause} ({group.cause.value})."


def _spot(culprit: Culprit | None, repository: Repository) -> Spot | None:
    if culprit is None or not culprit.in_app:
        return None
    path = repository.place(culprit.file)
    if path is None:
        return None
    column, end_column = _columns(culprit, repository.line(path, culprit.line))
    return Spot(
        path=path,
        line=culprit.line,
        function=printable(culprit.qualname, _TITLE_MAX),
        column=column,
        end_column=end_column,
    )


def _columns(culprit: Culprit, line: str | None) -> tuple[int, int]:
    """The columns in the file; the culprit counts them without the indentation."""
    if not culprit.column or not culprit.source or line is None or line.strip() != culprit.source:
        return 0, 0
    indent = len(line) - len(line.lstrip())
    return culprit.column + indent, culprit.end_column + indent if culprit.end_column else 0


def _steps(worst: Issue | None, repository: Repository) -> Iterator[Spot]:
    if worst is None or not worst.stacks:
        return
    heaviest = max(worst.stacks, key=lambda stack: stack.weight_ns)
    for frame in reversed(heaviest.frames):
        path = repository.place(frame.file) if frame.in_app else None
        if path is not None:
            yield Spot(path=path, line=frame.line, function=printable(frame.qualname, _TITLE_MAX))
