"""What a CI system is given: each bug once, with its line in the repository."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Culprit, Issue, Severity, StackFrame, Stall
from loopcanary.model.search import IssueGroup
from loopcanary.model.units import format_duration
from loopcanary.report.ci.repository import Repository
from loopcanary.report.model import Report
from loopcanary.words.causes import cause_words
from loopcanary.words.kinds import has_cause, kind_words
from loopcanary.words.text import count_of, printable

_TITLE_MAX = 300
_TEXT_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A line in the repository."""

    path: str
    """Below the root, with `/`."""
    line: int
    """From 1; 0 unknown."""
    function: str
    column: int = 0
    """Of the call, from 1, in characters; 0 unknown."""
    end_column: int = 0
    """Of the character after the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One bug."""

    fingerprint: str
    rule: str
    """`stall/sleep`: kind and cause."""
    rule_words: str
    """What the rule finds, in any bug: `stall: sleeping`."""
    severity: Severity
    """Of its longest issue."""
    title: str
    details: str
    """Sentences: how often and how long, what it waited for."""
    advice: str | None
    spot: Spot | None
    """None: no frame of it lies in the repository."""
    steps: tuple[Spot, ...]
    """How the program came there, outermost frame first: the frames that lie in the repository."""
    count: int
    total_ns: int
    max_ns: int
    is_known: bool
    """The baseline has it."""

    @property
    def words(self) -> str:
        """Details and advice."""
        return f"{self.details} Try: {self.advice}" if self.advice else self.details


def bugs(report: Report, repository: Repository, known: Collection[str] = ()) -> list[Bug]:
    """The bugs of a report that has the longest issue of each: new ones first, else in the report's order.
    `known`: fingerprints of the baseline."""
    found = [
        _bug(group, report.worst.get(group.fingerprint), repository, known)
        for group in (*report.groups, *report.issue_groups)
    ]
    return sorted(found, key=lambda one: one.is_known)


def _bug(group: IssueGroup, worst: Issue | None, repository: Repository, known: Collection[str]) -> Bug:
    words = kind_words(group.kind)
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
    """Columns in the file: the culprit's are those of its line without the indentation."""
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
            yield _step(frame, path)


def _step(frame: StackFrame, path: str) -> Spot:
    return Spot(path=path, line=frame.line, function=printable(frame.qualname, _TITLE_MAX))
