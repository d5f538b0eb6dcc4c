"""Programs that do not start or end, as issues.

The watchdog has found that nothing gets on, and that nothing from outside can help
(native/core/watchdog/watch_state.h). This part says where the main thread is, and for which thread it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from loopcanary.diagnosis.case import thread_names
from loopcanary.diagnosis.code.frame_table import FrameTable
from loopcanary.diagnosis.code.ownership import CodePaths, Ownership
from loopcanary.diagnosis.judgement import view_thread
from loopcanary.model import Clock, Config, Culprit, IssueKind, Session, StackFrame, StallEvidence, ThreadView
from loopcanary.model.issues.hangs import BootHang, ExitHang
from loopcanary.model.stall import Cause, WeightedStack, culprit_at, is_own_thread
from loopcanary.source_text import SourceReader
from loopcanary.words.waiting import target_words

_THREADS_MAX: Final = 20
_POOL: Final = "concurrent/futures/thread.py"
_PLACES: Final = (
    ("asyncio/runners.py", "Runner.close", "asyncio.run"),
    (_POOL, "_python_exit", "the end of concurrent.futures"),
    ("multiprocessing/util.py", "_exit_function", "the end of multiprocessing"),
    ("threading.py", "_shutdown", "threading._shutdown"),
)
"""File and function of what waits at a program's end, and what it is called; the innermost ones first."""
_WAIT_FOR_WORKERS: Final = ("asyncio.run", "the end of concurrent.futures")
_WAIT_FOR_THREADS: Final = (*_WAIT_FOR_WORKERS, "threading._shutdown")


def find_hang(
    evidence: StallEvidence,
    session: Session,
    config: Config,
    clock: Clock,
    *,
    sources: SourceReader,
    paths: CodePaths,
) -> BootHang | ExitHang | None:
    """What does not start or end, without id, title and fingerprint.

    None: the stacks do not say where the main thread is, or for what it waits. Raises nothing for any
    evidence that a reader can produce.
    """
    table = FrameTable(Ownership(paths, config.concern))
    last = next((one for one in reversed(evidence.samples) if one.stack), None)
    frames = table.place(last.stack).shown.frames if last is not None and last.stack is not None else ()
    if last is None or not frames:
        return None
    end_ns = evidence.last_look_ns if evidence.end_ns is None else evidence.end_ns
    facts: dict[str, Any] = {
        "thread": evidence.thread_name,
        "began_wall_ns": clock.to_wall_ns(evidence.begin_ns),
        "duration_ns": (lasted_ns := max(0, end_ns - evidence.begin_ns)),
        "stacks": (WeightedStack(weight_ns=lasted_ns, frames=frames),),
    }
    if evidence.hang is IssueKind.BOOT_HANG:
        waits_for = "" if last.target is None else target_words(last.target)
        culprit = _culprit(frames, sources, session)
        return BootHang(**facts, cause=Cause.IMPORT, culprit=culprit, waits_for=waits_for)
    where, threads = _waited_for(frames, _others(evidence, table), last.holder_tid)
    if where in _WAIT_FOR_THREADS and not threads:
        return None
    return ExitHang(
        **facts,
        cause=Cause.LOCK,
        culprit=_culprit(threads[0].frames if threads else frames, sources, session),
        where=where,
        threads=tuple(threads[:_THREADS_MAX]),
    )


def _waited_for(
    frames: Sequence[StackFrame], others: Sequence[ThreadView], holder: int | None
) -> tuple[str, Sequence[ThreadView]]:
    """What the main thread is in, and the threads that it may wait for: where it is known, that one."""
    places = (words for file, function, words in _PLACES if _is_in(frames, file, function))
    where = next(places, f"the exit function {frames[-1].qualname}")
    waited = [view for view in others if view.frames and _may_be_waited_for(view, where)]
    target = [view for view in waited if view.tid == holder]
    return where, target or (waited if where in _WAIT_FOR_THREADS else ())


def _may_be_waited_for(view: ThreadView, where: str) -> bool:
    """An executor's idle thread ends when it is told to; one that waits for others is none of its threads."""
    is_worker = _is_in(view.frames, _POOL, "_worker")
    is_idle = view.frames[0].function == "_worker"
    waits_for_them = _is_in(view.frames, _POOL, "ThreadPoolExecutor.shutdown")
    return not is_idle and not waits_for_them and (is_worker or where not in _WAIT_FOR_WORKERS)


def _is_in(frames: Sequence[StackFrame], file: str, function: str) -> bool:
    return any(frame.qualname == function and frame.file.endswith(file) for frame in frames)


def _others(evidence: StallEvidence, table: FrameTable) -> list[ThreadView]:
    """All threads but the main one and our own. Those of asyncio's executor come first."""
    names = thread_names(evidence)
    views = [
        view_thread(thread, names.get(thread.tid) or f"thread {thread.tid}", table)
        for thread in evidence.threads
        if thread.tid != evidence.tid and not is_own_thread(names.get(thread.tid, ""))
    ]
    return sorted(views, key=lambda view: not view.name.startswith("asyncio_"))


def _culprit(frames: Sequence[StackFrame], sources: SourceReader, session: Session) -> Culprit:
    """The innermost line of the program's own; else the innermost."""
    frame = next((frame for frame in frames if frame.in_app), frames[0])
    text = sources.read(frame.file)
    lines = () if text is None or (text.modified_wall_ns or 0) > session.started_wall_ns else text.lines
    source = lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else None
    return replace(culprit_at(frame), source=source)
