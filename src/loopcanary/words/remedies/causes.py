"""Remedies by cause, by the topic of a finding, and by the framework around the call: one line a row."""

from __future__ import annotations

from loopcanary.model import Cause
from loopcanary.words.remedies.remedy import Remedy, Way


def _cause(cause: Cause, text: str, way: Way | None = None, loop: str = "") -> Remedy:
    return Remedy(f"{loop or 'any'}.{cause.value}", text, way, frozenset({cause}), loop=loop)


def _topic(topic: str, text: str, way: Way | None = None, replaces: str = "") -> Remedy:
    """With a way: in asyncio's words. `replaces`: see Remedy; separated by blanks."""
    loop = "" if way is None else "asyncio"
    return Remedy(topic, text, way, loop=loop, topic=topic, replaces=tuple(replaces.split()))


# fmt: off
CAUSES: tuple[Remedy, ...] = (
    # In the words of asyncio; loops.py has the words of other loops for the same way.
    _cause(Cause.SLEEP, "Wait with `await asyncio.sleep(...)`.", Way.TIMER, "asyncio"),
    _cause(Cause.DNS, "Resolve names with `await loop.getaddrinfo(...)`.", Way.RESOLVE, "asyncio"),
    _cause(Cause.SUBPROCESS, "Use `await asyncio.create_subprocess_exec(...)`.", Way.CHILD, "asyncio"),
    _cause(Cause.NETWORK_IO, "Use an async client, or run the call with `await asyncio.to_thread(...)`.", Way.CLIENT, "asyncio"),
    _cause(Cause.DISK_IO, "Run the file work with `await asyncio.to_thread(...)`, or use aiofiles.", Way.THREAD, "asyncio"),
    _cause(Cause.LOCK, "Wait without blocking the loop: an asyncio primitive, or `await asyncio.to_thread(...)`.", Way.HANDOVER, "asyncio"),
    _cause(Cause.NATIVE_CPU, "Run it with `await asyncio.to_thread(...)` if it releases the GIL, else in a process pool.", Way.PROCESS, "asyncio"),
    _cause(Cause.CPU, "Cut the work up with `await asyncio.sleep(0)` between the pieces, or use a process pool.", Way.PIECES, "asyncio"),
    # Causes whose advice does not depend on a call.
    _cause(Cause.IMPORT, "Import the module before the first frame.", loop="pygame"),
    _cause(Cause.GC, "Collect between levels: `gc.freeze()` after loading, `gc.disable()` while a level runs, `gc.collect()` at its end.", loop="pygame"),
    _cause(Cause.GIL, "Split the work of `{holder}`{at: } into smaller pieces, or do it while no frame is drawn: it holds the GIL.", loop="pygame"),
    _cause(Cause.IMPORT, "Import the module when the program starts, before the loop runs."),
    _cause(Cause.GC, "Call `gc.freeze()` after start-up, raise the threshold with `gc.set_threshold()`, or find out what allocates so much."),
    _cause(Cause.GIL, "Split the work of `{holder}`{at: } into smaller pieces, or move it to a process: it holds the GIL."),
    _cause(Cause.BURST, "Start fewer of them at once, in batches of which each ends before the next begins, or make each of them shorter."),
    _cause(Cause.CRASH, "C code crashed: look at its stack in the core (`coredumpctl gdb`), and at what it was given."),
    _cause(Cause.HOST, "Your code is not at fault: give the process more CPU, or check its CPU limits and its neighbours."),
)

TOPICS: tuple[Remedy, ...] = (
    _topic("gc-asked", "Leave `gc.collect()` out, or call it while the program idles; `gc.freeze()` keeps the objects of the start-up out of later collections."),
    _topic("stack-over", "Limit the depth of the recursion, or of the data that it walks; `threading.stack_size()` gives threads that start later more stack."),
    _topic("throttled", "Your code is not at fault: raise the container's CPU quota (cpu.max), or use fewer threads, so that the quota lasts through its period."),
    _topic("stolen", "Your code is not at fault: this virtual machine got less CPU than it has cores. Ask for cores of its own, or for a host with fewer neighbours."),
    _topic("lowered", "Do not lower the priority or the number of cores of the loop's thread: move work that can wait to a thread or process of its own, and lower them there."),
    _topic("own-work", "Your code is not at fault: loopcanary was working on an earlier stall. With more CPU, or a higher threshold, that takes less time."),
    _topic("frozen", "Your code is not at fault: find out what stopped the process, such as a debugger, SIGSTOP, a frozen container or a machine that was suspended."),
    _topic("terminal-output", "Print less, or from another thread: a terminal takes output only as fast as it shows it."),
    _topic("deadlock", "The thread waits for a lock that it holds itself: use an `RLock`, or do not take it twice."),
    _topic("deadlock-of-locks", "Take these locks in the same order on all threads, hold one at a time, or give up after a while: `acquire(timeout=...)`."),
    _topic("deadlock-of-join", "Release the lock before the wait for the thread's end: that thread needs it. Or wait with `join(timeout=...)`."),
    _topic("deadlock-of-future", "Release the lock before the wait for the result: the thread that it comes from needs that lock. Or wait with `result(timeout=...)`."),
    _topic("timeout-of-locks", "Take these locks in the same order on all threads, or hold one at a time: else one of them waits for its whole timeout."),
    _topic("timeout-of-join", "Release the lock before the wait for the thread's end: that thread needs it."),
    _topic("timeout-of-future", "Release the lock before the wait for the result: the thread that it comes from needs that lock."),
    _topic("join-needs-loop", "Do not wait for that thread on the loop, whose work it waits for: await that work first, or wait with `await asyncio.to_thread(...)`."),
    _topic("threads-need-each-other", "Let one of these threads go on without the other: hand the result over when it is there, and wait for no thread that waits for this one."),
    _topic("deadlock-with-loop", "Await the coroutine: a loop that waits for the result of its own work cannot do it."),
    _topic("deadlock-of-imports", "Import these modules before threads start, or one of them inside the functions that use it: each thread imports what the other waits for."),
    _topic("lazy-import", "Use `{call}` once when the program starts, before the loop runs, or leave `lazy` out {at}; with `-X lazy_imports=all` only the first helps."),
    _topic("late-import", "Use `{call}` once when the program starts, before the loop runs: its import {at} is lazy here, and waits for that."),
    _topic("log-handler", "Put `logging.handlers.QueueHandler` before this handler, which cannot await: a `QueueListener` thread then calls it."),
    _topic("held-block", "Move `{slow}` {at} out of the `{block}` block in `{holder}`: do it before or after.", replaces="threading semaphore.acquire mp-locks"),
    _topic("held-lock", "Hold the lock for less in `{holder}`{at: }: do the slow part before or after.", replaces="threading semaphore.acquire mp-locks"),
    _topic("frees-on-return", "Let `{call}` make fewer objects, or free them in pieces: a function frees its objects as it returns, and holds the GIL.", replaces="asyncio.native-cpu"),
    _topic("growing-text", "Collect the parts in a list and join them once, after the loop: each `+` copies the whole text."),
    _topic("freed-by-task", "Before the task ends, free in pieces what it keeps: freeing so many objects at once takes long, and holds the GIL."),
    _topic("handed-result", "Pass the function, not its result: `{call}` runs here, before anything else gets what it returns."),
    _topic("run-called", "Call `start()` in place of `{call}`: called directly, `run` runs on its caller's thread."),
    _topic("slot-called", "Emit a signal that is connected to it in place of `{call}`, or use `QMetaObject.invokeMethod`: called directly, it runs on its caller's thread, not on the one that its object was moved to."),
    # On other loops the way is named.
    _topic("terminal-input", "Read input on another thread, such as with `await asyncio.to_thread(sys.stdin.readline)`.", Way.INPUT),
    _topic("full-pipe", "Write to the pipe through the loop (`asyncio.create_subprocess_exec`, `await process.stdin.drain()`), or from another thread: its reader was slow.", Way.CHILD, "file.write"),
    _topic("empty-pipe", "Read the pipe through the loop (`asyncio.create_subprocess_exec`, `await process.stdout.readline()`), or on another thread.", Way.CHILD, "file.read child.read input"),
    _topic("kernel-event", "Let the loop watch the descriptor with `loop.add_reader(...)`, or run `{call}` with `await asyncio.to_thread(...)`.", Way.WATCH, "file.read"),
    _topic("slow-open", "Run `{call}` with `await asyncio.to_thread(...)`; a fifo opens at once with `os.O_RDWR`, or once its other end is open.", Way.THREAD, "open"),
    Remedy("thread.holder-unknown", "Find out who holds the lock, which no thread was seen to hold: if this one has taken it before, use an `RLock`, or do not take it twice; else wait with a timeout.", loop="thread", topic="holder-unknown"),
    _topic("holder-unknown", "Find out who holds the lock, which no thread was seen to hold: if this thread has taken it before, use an `RLock`, or do not take it twice; else do not wait for it on this thread.", replaces="threading"),
    _topic("held-import", "Wait for the module before the loop serves, such as with `await asyncio.to_thread(...)`: another thread is importing it.", Way.HANDOVER),
    _topic("held-wait", "Wait for the lock with `await asyncio.to_thread(...)`, or do not share it with that thread.", Way.HANDOVER),
    _topic("thread-runs", "Wait for the thread's end with `await asyncio.to_thread(thread.join)`, or start its work with `await asyncio.to_thread(...)`.", Way.HANDOVER, "threading"),
    _topic("released-gil", "Run it with `await asyncio.to_thread(...)`: it releases the GIL while it works.", Way.THREAD),
    _topic("kept-gil", "Give it less at a time, or run it in a process pool: it holds the GIL, so that a thread does not help.", Way.PROCESS),
    _topic("slow-names", "Look at the resolver, too (`/etc/resolv.conf`), or keep the address: the name takes long to resolve.", Way.RESOLVE),
    _topic("polling", "Await an `asyncio.Event` with a timeout (`asyncio.wait_for`) in place of polling with `{call}`.", Way.TIMER, "time.sleep"),
    _topic("sleeps-inside", "Run `{call}` with `await asyncio.to_thread(...)`: the sleep is inside it.", Way.THREAD, "asyncio.sleep"),
    _topic("waits-inside", "Run `{call}` with `await asyncio.to_thread(...)`: the wait is inside it.", Way.THREAD, "asyncio.dns asyncio.subprocess asyncio.disk-io"),
    _topic("computes-inside", "Run `{call}` with `await asyncio.to_thread(...)`, where it and the loop take turns with the GIL, or in a process pool.", Way.THREAD, "asyncio.cpu"),
    _topic("makes-inside", "Run `{call}` with `await asyncio.to_thread(...)`, where it and the loop take turns with the GIL.", Way.THREAD, "asyncio.cpu"),
    _topic("busy-wait", "Wait with `await asyncio.sleep(...)` for the time that is left, in place of a loop that looks at the clock.", Way.TIMER),
    _topic("many-calls", "Let the loop run between so many calls of `{call}`, by `await asyncio.sleep(0)` in the loop around them, or make them with `await asyncio.to_thread(...)`.", Way.PIECES, "process pieces thread"),
    _topic("many-yields", "Let the loop run between the pieces that `{holder}` yields, by `await asyncio.sleep(0)`, or make each with `await asyncio.to_thread(...)`: nothing in it waits.", Way.PIECES, "process pieces thread"),
    _topic("tried", "Check first what often fails here, since an exception costs more, and cut the work up with `await asyncio.sleep(0)` between the pieces.", Way.PIECES, "asyncio.cpu"),
)
