"""The runs, and the health of their loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from loopcanary.document.makers import dim, line, name, part, place_of, said, sentences
from loopcanary.document.parts import Block, Head, Indented, Paragraph, Piece, Pieces, Table, TableRow, Tone
from loopcanary.document.times import moment
from loopcanary.model import Issue, LoopHealth, Session, SessionEnd
from loopcanary.model.session import TaskSurvey, WaitingTasks
from loopcanary.model.units import format_duration, format_number, format_size
from loopcanary.protocols.kinds import kind_of
from loopcanary.report.figures.loop_figures import LoopFigures, figures_of, stalled_share
from loopcanary.words.guards import guard_words
from loopcanary.words.lives import BRIEF_NS, life_words
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import share_words

_RUNS_MAX = 6
_WAITING_MAX = 5
_READ_MAX = 16_384
"""Tasks that a look reads (native/cpython/tasks/look.h)."""
_LOOPS_MAX = 6
_HEADS = tuple(
    Head(words, is_number=True) for words in ("busy", "delay mean", "p50", "p90", "p99", "p99.9", "max")
)


def runs_part(
    sessions: Sequence[Session], issues: Iterable[Issue] = (), *, in_detail: bool
) -> tuple[Block, ...]:
    """Runs, newest first, with what their issues say of a run as a whole; in detail with machine and
    settings, which an issue tracker asks for first."""
    shown = sessions[:_RUNS_MAX]
    ids = {session.id for session in shown}
    words_of_runs = defaultdict(list)
    for issue in issues:
        if issue.session in ids and (words := kind_of(issue).run(issue)):
            words_of_runs[issue.session].append(words)
    blocks = [
        block for session in shown for block in _run(session, words_of_runs[session.id], in_detail=in_detail)
    ]
    if len(sessions) > _RUNS_MAX:
        blocks.append(line(dim(f"and {len(sessions) - _RUNS_MAX:,} before")))
    return part("Runs", [Indented(tuple(blocks))] if blocks else [])


def _run(session: Session, more: Sequence[str], *, in_detail: bool) -> Iterator[Block]:
    version = said(" ", name(session.version)) if session.version else ""
    pid = f"pid {session.pid}, " if session.pid else ""  # of an imported run there may be none
    process = f" ({pid}{printable(session.python, 60)}), "
    began = moment(session.started_wall_ns)
    yield line(f"{began}  ", name(session.name or "(no name)"), version, process, *_end(session))
    yield Indented((*map(line, more), *_about(session, in_detail=in_detail), *_survey(session)))


def _survey(session: Session) -> Iterator[Block]:
    """What its tasks waited for."""
    survey = session.survey
    if survey is None:
        return
    there = "there were" if survey.tasks > 1 else "there was"
    tasks = f"{'at least ' if survey.tasks >= _READ_MAX else ''}{count_of(survey.tasks, 'task')}"
    yield line(dim(f"at {moment(survey.taken_wall_ns)} {there} {tasks} of asyncio:"))
    yield Indented(tuple(line(*_waiting(group, survey)) for group in survey.groups[:_WAITING_MAX]))
    if len(survey.groups) > _WAITING_MAX:
        yield line(dim(f"  and {len(survey.groups) - _WAITING_MAX:,} groups more (JSON has all)"))


def _waiting(group: WaitingTasks, survey: TaskSurvey) -> Iterator[str | Piece]:
    who = count_of(group.count, "task") if group.count > 1 else f"task {printable(group.name, 60)}"
    waited_ns = survey.taken_wall_ns - (group.since_wall_ns or survey.taken_wall_ns)
    for_ns = f" for at least {format_duration(waited_ns)}" if waited_ns > 0 else ""
    yield f"{who} {group.waits}{for_ns}  "
    frame = next((one for one in group.frames if one.in_app), next(iter(group.frames), None))
    if frame is not None:
        yield from (place_of(frame.file, frame.line, is_own=frame.in_app), " in ", name(frame.qualname))


def _end(session: Session) -> Pieces:
    if session.is_running:
        return said(Piece("running", Tone.GOOD))
    length = format_duration(max((session.ended_wall_ns or 0) - session.started_wall_ns, 0))
    if session.end is SessionEnd.RUNNING:
        return said(f"seen for {length}")
    if session.end in (SessionEnd.KILLED, SessionEnd.CRASHED):
        return said(Piece(f"{session.end.value} after {length}", Tone.ALARM))
    return said(f"ran {length}")


def _about(session: Session, *, in_detail: bool) -> Iterator[Block]:
    if in_detail and (machine := ", ".join(_machine(session))):
        yield sentences(dim(machine))
    if session.imported_wall_ns is not None:
        bundle = printable(session.imported_from or "a bundle", 60)
        host = printable(session.host, 60)
        yield line(dim(f"on {host}; imported {moment(session.imported_wall_ns)} from {bundle}"))
    loops = [loop for loop in session.loops if loop.turns]
    if loops:
        rows = tuple(_loop(loop, session) for loop in loops[:_LOOPS_MAX])
        yield Table((Head("loop"), *_HEADS), rows)
    if len(loops) > _LOOPS_MAX:
        yield line(dim(f"and {count_of(len(loops) - _LOOPS_MAX, 'more loop')}"))
    if guarded := "; ".join(guard_words(session)):
        yield sentences(dim(guarded))


def _machine(session: Session) -> Iterator[str]:
    if machine := " ".join(filter(None, (session.system, session.machine))):
        yield printable(machine, 60)
    if session.cores:
        limit = "" if session.cpu_limit is None else f" limited to {format_number(session.cpu_limit)}"
        yield f"{count_of(session.cores, 'core')}{limit}"
    if session.memory_bytes:
        yield format_size(session.memory_bytes)
    engine = "" if session.engine == "native" else f", engine {printable(session.engine, 60)}"
    yield f"threshold {format_duration(session.threshold_ns)}{engine}"


def _loop(loop: LoopHealth, session: Session) -> TableRow:
    kind = "" if loop.kind == "asyncio" else f" {loop.kind}"
    delays = [loop.delay_mean_ns, loop.delay_p50_ns, loop.delay_p90_ns, loop.delay_p99_ns]
    # A session that was stored before p99.9 was taken has 0 there.
    p999 = format_duration(loop.delay_p999_ns) if loop.delay_p999_ns or not loop.delay_p99_ns else "-"
    cells = [share_words(loop.utilization), *map(format_duration, delays), p999]
    cells.append(format_duration(loop.delay_max_ns))
    more = "; ".join(filter(None, (life_words(loop, session), *_more(loop, figures_of(loop)))))
    below: tuple[Paragraph, ...] = (sentences(dim(more)),) if more else ()
    return TableRow((said(name(f"{loop.thread}{kind}")), *map(said, cells)), below=below)


def _more(health: LoopHealth, loop: LoopFigures) -> Iterator[str]:
    if loop.stalled_s_per_hour is not None:
        stalls = f" ({count_of(loop.stalls, 'stall')})" if loop.stalls else ""
        hourly = f"{format_number(loop.stalled_s_per_hour)} s an hour"
        share = stalled_share(health)
        yield f"stalled {hourly if share is None else f'{share_words(share)} of the time'}{stalls}"
    if health.window_ns < BRIEF_NS:
        yield f"{count_of(health.callbacks, 'callback')} in {count_of(health.turns, 'turn')}"
    elif loop.callbacks_per_s is not None and loop.turns_per_s is not None:
        turns = format_number(loop.turns_per_s)
        yield f"{format_number(loop.callbacks_per_s)} callbacks/s in {turns} turns/s"
    if loop.callback_weighted_ns is not None:
        yield f"a callback lasts {format_duration(loop.callback_weighted_ns)} (weighted by time)"
    if loop.congested is not None:
        yield f"congested {share_words(loop.congested)} of the time"
    if loop.gc_ns:
        yield f"gc {format_duration(loop.gc_ns)}"
    if loop.run_queue is not None:
        yield f"runnable without a CPU {share_words(loop.run_queue)} of the time"
