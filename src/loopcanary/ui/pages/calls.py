"""The calls of a running program, traced for a while."""

from __future__ import annotations

from dataclasses import replace

from loopcanary.late_dataclass import dataclass
from loopcanary.model.calls import Recording, ThreadCalls
from loopcanary.report.recording import NOTHING_CALLED, thread_words
from loopcanary.ui.pages.trees import IssueTree, calls_tree, outermost_ns, work_rows
from loopcanary.words.text import printable
from loopcanary.words.traced import left_out_words


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPart:
    name: str
    took_ns: int
    tree: IssueTree
    """Its shares are those of `took_ns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsPage:
    title: str
    programs: tuple[str, ...]
    began_wall_ns: int
    duration_ns: int
    threads: tuple[ThreadPart, ...]
    """The thread whose calls took longest comes first."""
    nothing: str = NOTHING_CALLED
    notices: tuple[str, ...]

    @property
    def generated_wall_ns(self) -> int:
        return self.began_wall_ns + self.duration_ns


def calls_page(recording: Recording) -> CallsPage:
    session = recording.session
    parts = (_thread(thread) for thread in recording.threads)
    return CallsPage(
        title=f"{printable(session.name, 60)} (pid {session.pid})",
        programs=(session.name,),
        began_wall_ns=recording.began_wall_ns,
        duration_ns=recording.duration_ns,
        threads=tuple(sorted(parts, key=lambda part: -part.took_ns)),
        notices=recording.notices,
    )


def _thread(thread: ThreadCalls) -> ThreadPart:
    calls = thread.calls.rows
    took_ns = outermost_ns(calls)
    return ThreadPart(
        name=thread_words(thread),
        took_ns=took_ns,
        tree=replace(
            calls_tree(calls, took_ns, of="traced calls"),
            left_out=left_out_words(thread.calls, len(calls)),
            work=work_rows(thread.calls.work, took_ns),
        ),
    )
