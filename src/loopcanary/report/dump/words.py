"""What the threads of a process do, in half sentences that `loopcanary dump` has in all formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopcanary.model.outside import LaneSight, ProcessSight, StackReading, ThreadSight, WaitedLock
from loopcanary.model.units import format_duration
from loopcanary.model.waiting import SHARED_LOCK, SHARED_RLOCK, SHARED_SEMAPHORE, LockProof
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
    """What waits for a notice in a threading.Condition: `Queue.get`, `Event.wait`; None: nothing does.

    The lock that such a thread sleeps on is the wait's own. That no holder is known says nothing.
    """
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
    """Whether its work runs for longer than it may."""
    return lane is not None and lane.busy_ns is not None and lane.busy_ns > lane.threshold_ns > 0


def stack_words(thread: ThreadSight) -> str | None:
    """Why there are no frames, or not all; None where there is nothing to say."""
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
    """Circles of threads each of which waits, without a timeout, for a lock that the next one holds, or for
    its end."""
    waits_for = {
        thread.tid: thread.lock.holder_tid
        for thread in threads
        if thread.lock is not None and thread.lock.holder_tid is not None and not thread.lock.has_timeout
    }
    circles: dict[frozenset[int], tuple[int, ...]] = {}
    for start in waits_for:
        path = [start]
        while (following := waits_for.get(path[-1])) is not None and following not in path:
            path.append(following)
        if following is not None:
            circle = tuple(path[path.index(following) :])
            circles.setdefault(frozenset(circle), circle)
    return list(circles.values())
