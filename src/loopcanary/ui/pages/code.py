"""The culprit's line among its neighbours, read from disk only where the file is still what ran."""

from __future__ import annotations

from collections.abc import Callable

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Culprit, Issue, Session
from loopcanary.model.search import IssueGroup, IssueQuery
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.sources import session_named
from loopcanary.ui.tools import SourceText, Tools

AROUND = 5
_LINE_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """One line, cut in three where the call is marked."""

    number: int
    before: str
    call: str = ""
    after: str = ""
    is_culprit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeView:
    file: str
    line: int
    function: str
    in_app: bool
    lines: tuple[CodeLine, ...]
    """Empty: no line was stored, and none can be read."""
    is_current: bool
    """Whether the file has not changed, and is read from disk; else the line is as it was stored."""


def code_view(
    culprit: Culprit,
    started_wall_ns: int | None,
    read: Callable[[str], SourceText | None],
    around: int = AROUND,
) -> CodeView:
    """The line with its neighbours, or as it was stored. A file is shown only if it was not written after
    the process had started, and still has the stored text in that line: so no other text of a file is shown.
    """
    found = _around(culprit, started_wall_ns, read, around) if culprit.source else ()
    stored = (_marked(culprit, culprit.source, ""),) if culprit.source else ()
    return CodeView(
        file=culprit.file,
        line=culprit.line,
        function=culprit.qualname,
        in_app=culprit.in_app,
        lines=found or stored,
        is_current=bool(found),
    )


def _around(
    culprit: Culprit,
    started_wall_ns: int | None,
    read: Callable[[str], SourceText | None],
    around: int,
) -> tuple[CodeLine, ...]:
    text = read(culprit.file)
    if text is None or not 1 <= culprit.line <= len(text.lines):
        return ()
    if text.modified_wall_ns is not None and (
        started_wall_ns is None or text.modified_wall_ns > started_wall_ns
    ):
        return ()
    now = text.lines[culprit.line - 1]
    if now.strip() != culprit.source:
        return ()
    first = max(culprit.line - around, 1)
    indent = now[: len(now) - len(now.lstrip())]
    return tuple(
        _marked(culprit, now.strip(), indent)
        if number == culprit.line
        else CodeLine(number=number, before=line[:_LINE_MAX])
        for number, line in enumerate(text.lines[first - 1 : culprit.line + around], start=first)
    )


def _marked(culprit: Culprit, source: str, indent: str) -> CodeLine:
    begin, end = culprit.column - 1, culprit.end_column - 1
    if not 0 <= begin < end or begin >= len(source):
        return CodeLine(number=culprit.line, before=(indent + source)[:_LINE_MAX], is_culprit=True)
    return CodeLine(
        number=culprit.line,
        before=(indent + source[:begin])[-_LINE_MAX:],
        call=source[begin:end][:_LINE_MAX],
        after=source[end:][:_LINE_MAX],
        is_culprit=True,
    )


def code_of(
    group: IssueGroup, worst: Issue | None, source: IssueStore, tools: Tools, around: int = AROUND
) -> CodeView | None:
    """The group's line with its neighbours, as its latest issue has it."""
    if group.culprit is None:
        return None
    latest = next(iter(source.issues(IssueQuery(fingerprint=group.fingerprint), 1)), worst)
    return code_view(group.culprit, started_of(source, latest), tools.read_source, around)


def holder_code(
    issue: Issue | None, source: IssueStore, tools: Tools, around: int = AROUND
) -> CodeView | None:
    """The line of the thread that held the GIL or lock; None: it is not known, or no thread did."""
    if issue is None or issue.holder is None or issue.holder.culprit is None:
        return None
    return code_view(issue.holder.culprit, started_of(source, issue), tools.read_source, around)


def started_of(source: IssueStore, issue: Issue | None) -> int | None:
    """When the issue's process started on this machine; None: it is not known. Imported issues have none:
    the maker of a bundle can name any file and guess a line of it, and a page that is passed on must not
    show its surroundings."""
    session = session_of(source, issue)
    return None if session is None or session.imported_wall_ns is not None else session.started_wall_ns


def session_of(source: IssueStore, issue: Issue | None) -> Session | None:
    return None if issue is None else session_named(source, issue.session)
