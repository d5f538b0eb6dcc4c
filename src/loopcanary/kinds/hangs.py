"""Programs that do not start, or do not end."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.parts import Block
from loopcanary.kinds.places import stack_part
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.issues.hangs import BootHang, ExitHang
from loopcanary.protocols.kinds import Kind
from loopcanary.words.text import printable
from loopcanary.words.waiting import thread_by_name

_NAME_MAX = 120
_NAMED = 3


class BootHangKind(Kind[BootHang]):
    """An import that has been in one call since before the first loop."""

    issue_class = BootHang
    words = "boot hang"
    list_words = "boot hangs"
    is_found_early = True

    def title(self, issue: BootHang) -> str:
        """`an import has not ended: it waits for socket to 10.0.0.5:80, in load (app.py:3)`."""
        waits = f" for {printable(issue.waits_for, _NAME_MAX)}" if issue.waits_for else ""
        return f"an import has not ended: it waits{waits}{_place(issue)}"

    def evidence(self, issue: BootHang) -> Iterator[str]:  # noqa: ARG002 - as every kind's
        """What the watchdog saw."""
        yield "before its first loop the main thread used no CPU time, and stayed in the same call"

    def advice(self, issue: BootHang) -> str:  # noqa: ARG002
        return "Give the call a timeout, or make it when the program runs, not when the module is imported"


class ExitHangKind(Kind[ExitHang]):
    """A program whose threads wait for each other at its end."""

    issue_class = ExitHang
    words = "exit hang"
    list_words = "exit hangs"
    is_found_early = True

    def title(self, issue: ExitHang) -> str:
        """`the program does not end: asyncio.run waits for thread asyncio_0, in work (app.py:9)`."""
        names = [thread_by_name(view.name) for view in issue.threads]
        who = ", ".join([*names[:_NAMED], *(["..."] if len(names) > _NAMED else [])])
        if len(names) > 1:
            who = f"one of {len(names)} threads: {who}"
        place = _place(issue) if len(names) <= 1 else ""
        waits = f" for {who}" if who else ""
        return f"the program does not end: {printable(issue.where, _NAME_MAX)} waits{waits}{place}"

    def evidence(self, issue: ExitHang) -> Iterator[str]:  # noqa: ARG002 - as every kind's
        """What the watchdog saw."""
        yield "the whole process has used next to no CPU time meanwhile"

    def advice(self, issue: ExitHang) -> str | None:
        return "Tell the thread to end before the program does" if issue.threads else None

    def parts(self, issue: ExitHang) -> Iterator[Block]:
        """The stacks of the threads that it may wait for."""
        for view in issue.threads:
            yield from stack_part(thread_by_name(view.name), view.frames)


def _place(issue: IssueFacts) -> str:
    culprit = issue.culprit
    if culprit is None:
        return ""
    where = f"{culprit.file.rpartition('/')[2]}:{culprit.line}"
    return f", in {printable(culprit.function, _NAME_MAX)} ({printable(where, _NAME_MAX)})"
