"""The tasks of asyncio as they were found from outside: grouped by what they wait for, and where
(docs/how-to/dump.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loopcanary.document.makers import NOTHING, dim, line, said, sentences, strong
from loopcanary.document.parts import Block, Fact, Facts, Frames, Indented, Piece, Tone
from loopcanary.model import Frame
from loopcanary.model.circles import is_lock, task_circles
from loopcanary.model.outside import ProcessSight, TaskSight, TaskState, TaskWait
from loopcanary.report.frames import frame_lines, frame_to_dict, is_library
from loopcanary.wire import Json, to_wire
from loopcanary.words.text import count_of, library_path, printable
from loopcanary.words.waiting import target_words

Tasks = Sequence[TaskSight]

_GROUPS_MAX = 64
_CIRCLES_MAX = 8
_NAME_MAX = 60
_NAMES_MAX = 6
_HOLDERS_MAX = 3
_TARGETS_MAX = 3
_STATES = {
    TaskState.READY: ("is ready to go on", "are ready to go on"),
    TaskState.NOT_BEGUN: ("has not begun", "have not begun"),
    TaskState.RUNS: ("runs now", "run now"),
    TaskState.MOVING: ("went on while it was read", "went on while they were read"),
    TaskState.UNREADABLE: ("cannot be read", "cannot be read"),
}


def task_blocks(process: ProcessSight, tasks: Tasks, *, everything: bool) -> Iterator[Block]:
    """Circles first, then group by group: that of the main task, and the largest ones. On request with all
    that they await."""
    dead = task_circles(tasks)
    loops = len({task.loop for task in tasks})
    found = f"{count_of(_size(range(len(tasks)), tasks), 'task')} of asyncio" + (
        f", in {loops} loops" if loops > 1 else ""
    )
    told = [_circle_words(circle, tasks) for circle in dead[:_CIRCLES_MAX]]
    if len(dead) > _CIRCLES_MAX:
        told.append(f"and {count_of(len(dead) - _CIRCLES_MAX, 'more circle')} (JSON has all)")
    alarms = [Fact("circle", said(Piece(sentence, Tone.ALARM))) for sentence in told]
    yield Facts((*alarms, Fact("tasks", said(found))))
    groups = grouped(tasks, dead)
    for group in groups[:_GROUPS_MAX]:
        yield NOTHING
        yield from _group(group, tasks, process, everything)
    if len(groups) > _GROUPS_MAX:
        rest = sum(_size(group, tasks) for group in groups[_GROUPS_MAX:])
        places = f"in {len(groups) - _GROUPS_MAX:,} more groups (JSON has all)"
        yield from (NOTHING, line(dim(f"and {count_of(rest, 'task')} {places}")))


def grouped(tasks: Tasks, circles: Iterable[Sequence[int]]) -> list[list[int]]:
    """Numbers of tasks that wait for the same thing at the same places: those in circles, the main task, the
    largest groups."""
    dead = {number for circle in circles for number in circle}
    found: dict[object, list[int]] = {}
    for number, task in enumerate(tasks):
        key = (task.state, task.wait and task.wait.what, task.is_main, number in dead, task.frames)
        found.setdefault(key, []).append(number)
    return sorted(
        (group for group in found.values() if _size(group, tasks)),
        key=lambda group: (group[0] not in dead, not tasks[group[0]].is_main, -_size(group, tasks)),
    )


def _size(group: Iterable[int], tasks: Tasks) -> int:
    return sum(tasks[number].count for number in group)


def _circle_words(circle: Sequence[int], tasks: Tasks) -> str:
    """`A waits for an asyncio.Lock that B holds (app.py:12), B waits for the end of A (app.py:17)`"""
    told = []
    for at, number in enumerate(circle[:_NAMES_MAX]):
        task, other = tasks[number], _name(tasks[circle[(at + 1) % len(circle)]])
        for_its_end = task.wait is not None and task.wait.task is not None
        what = f"the end of {other}" if for_its_end else f"an asyncio.Lock that {other} holds"
        told.append(f"{_name(task)} waits for {what}{_at(task)}")
    more = f", and {count_of(len(circle) - _NAMES_MAX, 'more task')}" if len(circle) > _NAMES_MAX else ""
    return f"{', '.join(told)}{more}: a deadlock, unless a timeout or a cancellation ends it"


def _name(task: TaskSight) -> str:
    return printable(task.name, _NAME_MAX) or "a task without a name"


def _own(task: TaskSight) -> Frame | None:
    """The innermost frame of the program's own code; if there is none, of any."""
    return next((frame for frame in task.frames if not is_library(frame)), next(iter(task.frames), None))


def _at(task: TaskSight) -> str:
    frame = _own(task)
    if frame is None:
        return ""
    return f" ({printable(library_path(frame.file).rpartition('/')[2], _NAME_MAX)}:{frame.line})"


def wait_words(numbers: Sequence[int], tasks: Tasks) -> str:
    """What these tasks, which wait for the same thing, do: `wait for an asyncio.Lock that B holds`."""
    one = tasks[numbers[0]]
    is_one = _size(numbers, tasks) == 1
    if one.wait is None:
        return _STATES[one.state][not is_one]
    waits = [wait for number in numbers if (wait := tasks[number].wait) is not None]
    targets = sorted({target_words(wait.target, _NAME_MAX) for wait in waits if wait.target is not None})
    more = f" and {len(targets) - _TARGETS_MAX} more" if len(targets) > _TARGETS_MAX else ""
    named = f" ({', '.join(targets[:_TARGETS_MAX])}{more})" if targets else ""
    timeout = ", within a timeout" if all(wait.has_timeout for wait in waits) else ""
    is_many = is_lock(one.wait) and len({wait.holders for wait in waits}) > 1
    what = "asyncio.Locks" if is_many else _what(one.wait)
    return f"{'waits' if is_one else 'wait'} for {what}{named}{_others(waits, tasks)}{timeout}"


def _what(wait: TaskWait) -> str:
    """It may have a name of the program's in it."""
    return printable(wait.what, 2 * _NAME_MAX)


def _others(waits: Sequence[TaskWait], tasks: Tasks) -> str:
    """` that B holds, which waits for a timer (asyncio.sleep) (app.py:8)`"""
    holders = sorted({number for wait in waits for number in wait.holders})
    awaited = sorted({wait.task for wait in waits if wait.task is not None})
    if awaited:
        return f": {_name(tasks[awaited[0]])}{_which(tasks[awaited[0]])}" if len(awaited) == 1 else ""
    if not holders:
        return "; its holder is not known" if is_lock(waits[0]) else ""
    if len(holders) == 1:
        return f" that {_name(tasks[holders[0]])} holds{_which(tasks[holders[0]])}"
    more = len(holders) - _HOLDERS_MAX
    names = ", ".join(_name(tasks[number]) for number in holders[:_HOLDERS_MAX])
    return f" that {names}{f' and {more} more' if more > 0 else ''} hold"


def _which(task: TaskSight) -> str:
    doing = f"waits for {_what(task.wait)}" if task.wait is not None else _STATES[task.state][0]
    return f", which {doing}{_at(task)}"


def _group(numbers: Sequence[int], tasks: Tasks, process: ProcessSight, everything: bool) -> Iterator[Block]:
    one = tasks[numbers[0]]
    size = _size(numbers, tasks)
    who = f"task {_name(one)}" if size == 1 else count_of(size, "task")
    main = dim("  main task") if one.is_main else ""
    yield sentences(strong(who), "  ", Piece(wait_words(numbers, tasks), Tone.NUMBER), main)
    inside: list[Block] = []
    if size > 1:
        inside.append(sentences(dim(_names(numbers, size, tasks))))
    own = _own(one)
    frames = one.frames if everything else tuple(frame for frame in (own,) if frame is not None)
    inside.append(Frames(tuple(frame_lines(frames, process, everything))))
    if one.truncated:
        inside.append(line(dim("... it awaits more than is read")))
    yield Indented(tuple(inside))


def _names(numbers: Sequence[int], size: int, tasks: Tasks) -> str:
    shown = numbers[:_NAMES_MAX]
    names = ", ".join(_name(tasks[number]) for number in shown)
    return names + (f" and {size - len(shown):,} more" if size > len(shown) else "")


# ---- JSON --------------------------------------------------------------------------------------------


def tasks_to_dict(tasks: Tasks | None) -> Json:
    """The fields of the dump's JSON that are about tasks; null if they were not looked at."""
    if tasks is None:
        return {"task_circles": None, "tasks": None}
    return {
        "task_circles": [list(circle) for circle in task_circles(tasks)],
        "tasks": [_task_to_dict(task) for task in tasks],
    }


def _task_to_dict(task: TaskSight) -> Json:
    return {
        "name": task.name,
        "is_main": task.is_main,
        "loop": task.loop,
        "state": task.state.value,
        "waits_for": None if task.wait is None else _wait_to_dict(task.wait),
        "truncated": task.truncated,
        "count": task.count,
        "frames": [frame_to_dict(frame) for frame in task.frames],
    }


def _wait_to_dict(wait: TaskWait) -> Json:
    return {
        "what": wait.what,
        "target": None if wait.target is None else to_wire(wait.target),
        "task": wait.task,
        "holders": list(wait.holders),
        "has_timeout": wait.has_timeout,
    }
