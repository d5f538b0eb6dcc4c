"""A process seen from outside: in half sentences, as a document, and as JSON (docs/how-to/dump.md).

In the document deep recursion is one line, however deep. The JSON gets new fields, and keeps the names of
old ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from loopcanary.document.makers import NOTHING, dim, line, said, strong
from loopcanary.document.parts import Block, Document, Fact, Facts, Frames, Indented, Paragraph, Piece, Tone
from loopcanary.model.circles import circles
from loopcanary.model.outside import LaneSight, ProcessSight, StackReading, ThreadSight, WaitedLock
from loopcanary.model.units import format_duration
from loopcanary.model.waiting import SHARED_LOCK, SHARED_RLOCK, SHARED_SEMAPHORE, LockProof
from loopcanary.report.frames import frame_lines, frame_to_dict
from loopcanary.report.tasks import task_blocks, tasks_to_dict
from loopcanary.wire import Json, time_to_text, to_wire
from loopcanary.words.text import count_of, library_path, printable
from loopcanary.words.waiting import proof_words, target_words

_NAME_MAX = 60
_SLEEPS = frozenset({"nanosleep", "clock_nanosleep"})
_SIGNALS = frozenset({"pause", "rt_sigtimedwait", "rt_sigsuspend"})
_READY = frozenset(
    {"poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter"}
)
_CHILD = frozenset({"wait4", "waitid"})
_FUTEX = frozenset({"futex", "futex_wait", "futex_waitv"})
_LOCK_WORDS = {
    "lock": "a lock",
    "RLock": "an RLock",
    "import lock": "the import lock",
    "end of a thread": "the end of a thread",
    SHARED_LOCK: f"a {SHARED_LOCK}",
    SHARED_RLOCK: f"a {SHARED_RLOCK}",
    SHARED_SEMAPHORE: f"a {SHARED_SEMAPHORE}",
}
_ELSEWHERE = "; no thread of this process is known to hold it: another process may have to release it"
_HOLDER_UNKNOWN = {
    "end of a thread": "",
    SHARED_LOCK: _ELSEWHERE,
    SHARED_RLOCK: _ELSEWHERE,
    SHARED_SEMAPHORE: "",
}
_NAMED_MAX = 6


def thread_words(thread: ThreadSight) -> str:
    """`main thread 12`, `thread 13 (worker)`."""
    name = f" ({printable(thread.name, _NAME_MAX)})" if thread.name else ""
    return f"{'main thread' if thread.is_main else 'thread'} {thread.tid}{name}"


def doing_words(thread: ThreadSight, threads: Mapping[int, ThreadSight]) -> str:
    """What the thread does now: `runs and holds the GIL`, `waits for an RLock that thread 13 holds`."""
    doing = _doing(thread, threads)
    if thread.holds_gil:
        doing += " and holds the GIL" if thread.state == "R" else ", and holds the GIL meanwhile"
    return doing


def _doing(thread: ThreadSight, threads: Mapping[int, ThreadSight]) -> str:
    if thread.state in ("T", "t"):
        return "is stopped by a signal" if thread.state == "T" else "is stopped by a debugger"
    if thread.waits_for_gil:
        return "waits for the GIL"
    if (condition := _condition(thread)) is not None:
        return f"waits to be notified ({condition})"
    if thread.lock is not None:
        return lock_words(thread.lock, threads)
    if thread.state == "R":
        return "runs" if thread.syscall is None else f"runs, in {thread.syscall}"
    deep = ", which cannot be interrupted" if thread.state == "D" else ""
    return _waiting(thread) + deep


def _condition(thread: ThreadSight) -> str | None:
    """Who waits for a notice in a threading.Condition: `Queue.get`, `Event.wait`; None: the thread does not.
    It sleeps on a lock of the wait's own, so an unknown holder says nothing."""
    frames = thread.stack.frames if thread.stack is not None else ()
    if thread.lock is not None and thread.lock.holder_tid is not None:
        return None  # it has been notified, and waits for the condition's lock
    if thread.syscall not in _FUTEX or not frames or frames[0].qualname != "Condition.wait":
        return None
    caller = frames[1] if len(frames) > 1 and frames[1].qualname == "Condition.wait_for" else frames[0]
    outer = frames[frames.index(caller) + 1 :]
    is_known = bool(outer) and library_path(outer[0].file) != outer[0].file
    return printable((outer[0] if is_known else caller).qualname, _NAME_MAX)


def _waiting(thread: ThreadSight) -> str:
    call = thread.syscall
    if call is None:
        return "waits for memory" if thread.state == "D" else "waits"
    if thread.target is not None:
        verb = "waits for" if call in _CHILD else f"waits in {call} on"
        return f"{verb} {target_words(thread.target, _NAME_MAX)}"
    if call in _SLEEPS:
        return f"sleeps ({call})"
    if call in _READY:
        return f"waits for something to happen ({call})"
    if call in _SIGNALS:
        return f"waits for a signal ({call})"
    if call in _CHILD:
        return f"waits for a child process ({call})"
    if call in _FUTEX:
        return f"waits for another thread ({call})"
    return f"waits in {call}"


def lock_words(lock: WaitedLock, threads: Mapping[int, ThreadSight]) -> str:
    """`waits for a lock that thread 13 holds (it is inside a with block of this lock), with a timeout`."""
    return _waited_for(lock, threads) + (", with a timeout" if lock.has_timeout else "")


def _waited_for(lock: WaitedLock, threads: Mapping[int, ThreadSight]) -> str:
    what = _LOCK_WORDS.get(lock.view.kind, "a lock")
    if lock.module is not None:
        what = f"the import of {printable(lock.module, _NAME_MAX)}"
    if lock.holder_tid is None:
        return f"waits for {what}" + _HOLDER_UNKNOWN.get(lock.view.kind, "; its holder is not known")
    holder = threads.get(lock.holder_tid)
    who = thread_words(holder) if holder is not None else f"thread {lock.holder_tid}"
    if lock.view.kind == "end of a thread":
        return f"waits for the end of {who}"
    proof = "" if lock.view.proof is LockProof.NONE else proof_words(lock.view.kind, lock.view.proof)
    return f"waits for {what} that {who} holds" + (f" ({proof})" if proof else "")


def lane_words(lane: LaneSight) -> str:
    """`asyncio loop, busy for 12.3 s in handle (Task-3): over its threshold of 100 ms`."""
    kind = f"{printable(lane.loop_kind, _NAME_MAX)} loop"
    if lane.busy_ns is None:
        return f"{kind}, waiting for work"
    what = f" in {printable(lane.callback, _NAME_MAX)}" if lane.callback else ""
    what += f" ({printable(lane.task, _NAME_MAX)})" if lane.task else ""
    what += f", scene {printable(lane.scene, _NAME_MAX)}" if lane.scene else ""
    over = f": over its threshold of {format_duration(lane.threshold_ns)}" if is_late(lane) else ""
    return f"{kind}, busy for {format_duration(lane.busy_ns)}{what}{over}"


def is_late(lane: LaneSight | None) -> bool:
    return lane is not None and lane.busy_ns is not None and lane.busy_ns > lane.threshold_ns > 0


def stack_words(thread: ThreadSight) -> str | None:
    """Why there are no frames, or not all; None: no need to say."""
    if thread.interpreter is None:
        return None
    if thread.reading is StackReading.NO_FRAMES:
        return "no Python frames"
    if thread.reading is StackReading.MOVING:
        return "its frames moved at every try: it runs Python code"
    if thread.reading is StackReading.UNREADABLE:
        return "its frames cannot be read"
    return None


def verdicts(process: ProcessSight) -> Iterator[tuple[str, str]]:
    """(heading, sentence) of what matters most: deadlocks, loops that hang, the GIL."""
    threads = {thread.tid: thread for thread in process.threads}
    for circle in deadlocks(process.threads):
        named = [thread_words(threads[tid]) for tid in circle[:_NAMED_MAX]]
        more = f" -> {count_of(len(circle) - _NAMED_MAX, 'more thread')}" if len(circle) > _NAMED_MAX else ""
        yield "deadlock", " -> ".join(named) + f"{more} -> {thread_words(threads[circle[0]])}"
    for thread in process.threads:
        if thread.lane is not None and is_late(thread.lane):
            yield "hangs", f"{thread_words(thread)}: {lane_words(thread.lane)}"
    yield from _gil(process.threads)


def _gil(threads: Sequence[ThreadSight]) -> Iterator[tuple[str, str]]:
    """One sentence for each interpreter whose GIL is held, or waited for."""
    for number in sorted({thread.interpreter for thread in threads if thread.interpreter is not None}):
        own = [thread for thread in threads if thread.interpreter == number]
        waiting = sum(thread.waits_for_gil for thread in own)
        holder = next((thread for thread in own if thread.holds_gil), None)
        of = f" of interpreter {number}" if number else ""
        waits = f"; {count_of(waiting, 'thread')} wait{'s' if waiting == 1 else ''} for it" if waiting else ""
        if holder is not None:
            yield f"GIL{of}", f"held by {thread_words(holder)}{waits}"
        elif waiting:
            yield f"GIL{of}", f"{count_of(waiting, 'thread')} wait{'s' if waiting == 1 else ''} for it"
        else:
            yield f"GIL{of}", "free"


def deadlocks(threads: Sequence[ThreadSight]) -> list[tuple[int, ...]]:
    """Circles of threads, each of which waits without a timeout for a lock of the next one, or its end."""
    waits_for = {
        thread.tid: thread.lock.holder_tid
        for thread in threads
        if thread.lock is not None and thread.lock.holder_tid is not None and not thread.lock.has_timeout
    }
    return circles(waits_for)


_OWN_NAME = "loopcanary"
"""The name of our threads: native/module/quiet_thread.c, native/core/watchdog/watchdog.c."""


def dump_document(process: ProcessSight, *, everything: bool) -> Document:
    """The document: what matters most first, then thread by thread; on request all frames and threads."""
    return Document(tuple(_blocks(process, everything)))


def _blocks(process: ProcessSight, everything: bool) -> Iterator[Block]:
    yield _head(process)
    if process.tasks is None:
        yield from _all_threads(process, everything)
    else:
        yield from task_blocks(process, process.tasks, everything=everything)
    for note in process.notes:
        yield from (NOTHING, line(Piece(note, Tone.WARN)))


def _all_threads(process: ProcessSight, everything: bool) -> Iterator[Block]:
    alarms = {"deadlock", "hangs"}
    yield Facts(
        tuple(
            Fact(heading, said(Piece(sentence, Tone.ALARM if heading in alarms else Tone.PLAIN)))
            for heading, sentence in verdicts(process)
        )
    )
    threads = {thread.tid: thread for thread in process.threads}
    for thread in process.threads:
        if everything or not _is_aside(thread):
            yield NOTHING
            yield from _thread(thread, threads, process, everything)
    if not everything and (others := _others(process)):
        yield from (NOTHING, line(dim(others)))


def _head(process: ProcessSight) -> Paragraph:
    found = [f"CPython {process.python}"]
    if process.age_ns is not None:
        found.append(f"up {format_duration(process.age_ns)}")
    watched = "not watched by loopcanary" if process.session is None else f"run {printable(process.session)}"
    what = printable(process.command or process.executable, 60)
    return line(strong(f"process {process.pid}"), f"  {what}  ", dim(", ".join([*found, watched])))


def _thread(
    thread: ThreadSight, threads: Mapping[int, ThreadSight], process: ProcessSight, everything: bool
) -> Iterator[Block]:
    in_trouble = is_late(thread.lane) or any(thread.tid in circle for circle in deadlocks(process.threads))
    doing = Piece(doing_words(thread, threads), Tone.WARN if in_trouble else Tone.NUMBER)
    number = dim(f"  interpreter {thread.interpreter}" if thread.interpreter else "")
    yield line(strong(thread_words(thread)), "  ", doing, number)
    yield Indented(tuple(_inside(thread, process, everything)))


def _inside(thread: ThreadSight, process: ProcessSight, everything: bool) -> Iterator[Block]:
    if thread.lane is not None:
        yield line(Piece(lane_words(thread.lane), Tone.WARN if is_late(thread.lane) else Tone.DIM))
    if (words := stack_words(thread)) is not None:
        yield line(dim(words))
    if thread.stack is None:
        return
    if thread.stack.inner_cut:
        yield line(dim("... inner frames, which moved while they were read"))
    yield Frames(tuple(frame_lines(thread.stack.frames, process, everything)))
    if thread.stack.truncated:
        yield line(dim("... more outer frames than are read"))


def _others(process: ProcessSight) -> str:
    aside = [thread for thread in process.threads if _is_aside(thread)]
    own = sum(thread.name == _OWN_NAME for thread in aside)
    others = [thread for thread in aside if thread.name != _OWN_NAME]
    found = [f"{count_of(own, 'thread')} of loopcanary"] if own else []
    if others:
        names = ", ".join(dict.fromkeys(printable(thread.name, 20) for thread in others if thread.name))
        named = f" ({names[:60]})" if names else ""
        found.append(f"{count_of(len(others), 'thread')} without Python{named}")
    return f"and {' and '.join(found)}; --all shows them" if found else ""


def _is_aside(thread: ThreadSight) -> bool:
    """Whether the program's author did not start it to run Python."""
    return thread.interpreter is None or thread.name == _OWN_NAME


SCHEMA = 1


def render_json(process: ProcessSight) -> str:
    threads = {thread.tid: thread for thread in process.threads}
    document: Json = {
        "schema": SCHEMA,
        "taken_at": time_to_text(process.taken_wall_ns),
        "pid": process.pid,
        "command": process.command,
        "executable": process.executable,
        "python": process.python,
        "age_ms": None if process.age_ns is None else process.age_ns / 1_000_000,
        "session": process.session,
        "deadlocks": [list(circle) for circle in deadlocks(process.threads)],
        "threads": [_thread_to_dict(thread, threads) for thread in process.threads],
        **tasks_to_dict(process.tasks),
        "notes": list(process.notes),
    }
    return json.dumps(document, indent=2) + "\n"


def _thread_to_dict(thread: ThreadSight, threads: Mapping[int, ThreadSight]) -> Json:
    return {
        "tid": thread.tid,
        "name": thread.name or None,
        "is_main": thread.is_main,
        "interpreter": thread.interpreter,
        "doing": doing_words(thread, threads),
        "state": thread.state,
        "syscall": thread.syscall,
        "target": None if thread.target is None else to_wire(thread.target),
        "holds_gil": thread.holds_gil,
        "waits_for_gil": thread.waits_for_gil,
        "lock": None if thread.lock is None else _lock_to_dict(thread.lock),
        "loop": None if thread.lane is None else to_wire(thread.lane),
        "stack": thread.reading.value,
        "inner_cut": thread.stack is not None and thread.stack.inner_cut,
        "truncated": thread.stack is not None and thread.stack.truncated,
        "frames": [] if thread.stack is None else [frame_to_dict(frame) for frame in thread.stack.frames],
    }


def _lock_to_dict(lock: WaitedLock) -> Json:
    return {
        "kind": lock.view.kind,
        "holder_tid": lock.holder_tid,
        "proof": lock.view.proof.value,
        "module": lock.module,
        "has_timeout": lock.has_timeout,
    }
