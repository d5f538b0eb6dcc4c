"""Evidence by the shortest words: what a story says, and defaults for all it does not."""

from __future__ import annotations

from typing import Any

from tests.building.evidence import MS, bare
from tests.building.stalls import running

from loopcanary.diagnosis.advice import RemedyTable, Setting, advise
from loopcanary.diagnosis.code.ownership import CodePaths
from loopcanary.diagnosis.judgement import diagnose
from loopcanary.diagnosis.samples.syscalls import _X86_64
from loopcanary.model import (
    Blocker,
    CallbackNames,
    Cause,
    Clock,
    Config,
    Frame,
    GilState,
    KernelView,
    Sample,
    Session,
    Stack,
    Stall,
    StallEvidence,
    StallState,
)
from loopcanary.source_text import SourceLines, SourceReader

ASYNC = 0x83
"""CO_COROUTINE, and what every function has."""
PLAIN = 0x03
NUMBERS = {name: number for number, name in _X86_64.items()}
STDLIB = "/usr/lib/python3.11"
SITE = "/srv/venv/lib/python3.11/site-packages"
APP = "/srv/app/app.py"
PATHS = CodePaths(
    stdlib=(STDLIB,), site=(SITE,), ours=(f"{SITE}/loopcanary",), roots=("/srv/app",), working="/srv/app"
)
SESSION = running(
    name="app", pid=7, host="h", python="CPython 3.11.7", started_wall_ns=1_000, machine="x86_64"
)
CLOCK = Clock(monotonic_ns=0, wall_ns=5_000 * MS)


class Texts:
    """Sources from a dict; written before the session began."""

    def __init__(self, modified_wall_ns: int | None = 0, **texts: str) -> None:
        self._modified = modified_wall_ns
        self._texts = {f"/srv/app/{name}.py": text for name, text in texts.items()}

    def add(self, file: str, text: str) -> None:
        self._texts[file] = text

    def read(self, file: str) -> SourceLines | None:
        text = self._texts.get(file)
        if text is None:
            return None
        return SourceLines(lines=tuple(text.split("\n")), modified_wall_ns=self._modified)


def at(call: str, source: str, *, function: str = "handler", file: str = APP) -> Frame:
    """A frame that is at `call` in `source`; the call is found by its text and fits in one line."""
    for number, line in enumerate(source.split("\n"), 1):
        column = line.find(call)
        if column >= 0:
            begin = len(line[:column].encode()) + 1
            return frame(function, file, number, column=begin, end_column=begin + len(call.encode()))
    raise AssertionError(f"{call!r} is not in the source")


def frame(function: str, file: str = APP, line: int = 1, **more: int) -> Frame:
    return Frame(qualname=function, file=file, line=line, **{"end_line": line, **more})


LOOP = (
    frame("Handle._run", f"{STDLIB}/asyncio/events.py", 80),
    frame("BaseEventLoop._run_once", f"{STDLIB}/asyncio/base_events.py", 1900),
    frame("Runner.run", f"{STDLIB}/asyncio/runners.py", 118),
    frame("<module>", APP, 99),
)


def stack(*frames: Frame, loop: bool = True) -> Stack:
    return Stack(frames=(*frames, *LOOP) if loop else frames)


def kernel(
    state: str = "S", syscall: str | None = None, on_cpu: int = 0, queue: int = 0, **more: Any
) -> KernelView:
    return KernelView(
        on_cpu_ns=on_cpu,
        run_queue_ns=queue,
        thread_state=state,
        syscall=None if syscall is None else NUMBERS[syscall],
        **more,
    )


def samples(
    *stacks: Stack | None,
    syscall: str | None = None,
    state: str = "S",
    running: bool = False,
    view: bool = True,
    queued: float = 0.0,
    args: tuple[int, int, int] = (1, 1, 1),
    gil: GilState = GilState.FREE,
    ran_ns: int = 0,
    **more: Any,
) -> tuple[Sample, ...]:
    """One sample each 10 ms, the first 20 ms after the begin. `running`: on a CPU all the time; `queued`:
    share of the time in the run queue; `ran_ns`: of a thread that sleeps again and again, between two."""
    step = 10 * MS
    return tuple(
        Sample(
            at_ns=20 * MS + index * step,
            stack=entry,
            kernel=kernel(
                "R" if running else state,
                syscall,
                on_cpu=int(index * step * (1 - queued)) if running else index * ran_ns,
                queue=int(index * step * queued),
                syscall_args=args,
            )
            if view
            else None,
            gil=gil,
            **more,
        )
        for index, entry in enumerate(stacks)
    )


def evidence(taken: tuple[Sample, ...] = (), *, lasted_ms: int | None = None, **more: Any) -> StallEvidence:
    """A stall that ended 10 ms after its last sample."""
    end = lasted_ms * MS if lasted_ms is not None else (taken[-1].at_ns + 10 * MS if taken else 300 * MS)
    seen = {
        "tid": 70,
        "end_ns": end,
        "last_look_ns": end,
        "names": CallbackNames(name="handler", task="Task-1"),
        "samples": taken,
        "sample_interval_ns": 10 * MS,
    }
    return bare(**{**seen, **more})


def judged(
    what: StallEvidence,
    source: str | None = None,
    *,
    config: Config | None = None,
    paths: CodePaths = PATHS,
    state: StallState = StallState.ENDED,
    session: Session = SESSION,
    sources: SourceReader | None = None,
) -> Stall:
    if sources is None:
        sources = Texts() if source is None else Texts(app=source)
    return diagnose(what, session, config or Config(), CLOCK, state=state, sources=sources, paths=paths)


def advised(
    cause: Cause,
    blocker: Blocker | None,
    reached: tuple[str, ...],
    loop: str,
    *,
    table: RemedyTable | None = None,
    **more: Any,
) -> str | None:
    """The advice where all time led through the same modules."""
    return advise(cause, blocker, Setting(loop=loop, reached={reached: 1}, **more), table=table)
