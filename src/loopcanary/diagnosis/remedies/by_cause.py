"""What is said where no call is known, by cause; and of findings that are more than their cause. Data."""

from __future__ import annotations

from collections.abc import Mapping

from loopcanary.model import Cause

BY_CAUSE: Mapping[Cause, str] = {
    Cause.SLEEP: "Wait with `await asyncio.sleep(...)`.",
    Cause.DNS: "Resolve names with `await loop.getaddrinfo(...)`.",
    Cause.SUBPROCESS: "Use `await asyncio.create_subprocess_exec(...)`.",
    Cause.NETWORK_IO: "Use an async client, or run the call with `await asyncio.to_thread(...)`.",
    Cause.DISK_IO: "Run the file work with `await asyncio.to_thread(...)`, or use aiofiles.",
    Cause.LOCK: "Wait without blocking the loop: an asyncio primitive, or `await asyncio.to_thread(...)`.",
    Cause.IMPORT: "Import the module when the program starts, before the loop runs.",
    Cause.NATIVE_CPU: "Run it by `asyncio.to_thread` if it releases the GIL, else in a process pool.",
    Cause.CPU: "Cut the work up with `await asyncio.sleep(0)` between the pieces, or use a process pool.",
    Cause.GC: "Call `gc.freeze()` after start-up, raise `gc.set_threshold`; look for what allocates so much.",
    Cause.GIL: "Make the thread that holds the GIL do less at a time, or move its work to a process.",
    Cause.BURST: "Spread the work over turns: bound what is scheduled at once, such as with a semaphore.",
    Cause.HOST: "Not the code: give the process more CPU, or look at its limits and neighbours.",
}

IN_ENDPOINTS: Mapping[str, str] = {
    "fastapi": "An endpoint or dependency that awaits nothing may be a plain `def`: FastAPI runs it on a "
    "thread.",
    "starlette": "An endpoint that awaits nothing may be a plain `def`: Starlette runs it on a thread.",
}
"""By package that the stack leads through: what is said beside a way that a thread makes possible."""

IN_GAMES: Mapping[Cause, str] = {
    Cause.IMPORT: "Import the module before the first frame.",
    Cause.GC: "Collect between levels: `gc.freeze()` after loading, `gc.disable()` while a level runs, "
    "`gc.collect()` at its end.",
    Cause.GIL: "Make the thread that holds the GIL do less at a time, or its work while no frame is drawn.",
}
"""Better words for games than a loop's, of causes that are about no call."""

BY_TOPIC: Mapping[str, str] = {
    "gc-asked": "Leave `gc.collect()` out, or call it while the program idles: it goes through all objects, "
    "and "
    "`gc.freeze()` keeps those of the start-up out of it.",
    "throttled": "Not the code: raise the container's CPU quota (cpu.max), or use fewer threads, so that "
    "the quota "
    "lasts through its period.",
    "frozen": "Not the code: find out what stopped the process, such as a debugger, SIGSTOP, a frozen "
    "container or a "
    "machine that was suspended.",
    "terminal-input": "Read input on another thread, such as with `await "
    "asyncio.to_thread(sys.stdin.readline)`.",
    "terminal-output": "Print less, or from another thread: a terminal takes output only as fast as it "
    "shows it.",
    "full-pipe": "Write to the pipe through the loop (`asyncio.create_subprocess_exec`, "
    "`process.stdin.drain()`), or "
    "from another thread: its reader was slow.",
    "empty-pipe": "Read the pipe through the loop (`asyncio.create_subprocess_exec`, "
    "`process.stdout.readline()`), or "
    "on another thread.",
    "held-lock": "Hold the lock for less in {holder}: do the slow part before or after; in the loop wait "
    "with "
    "`await asyncio.to_thread(...)`, or do not share the lock with it.",
    "deadlock": "The thread waits for a lock that it holds itself: use `threading.RLock`, or do not take it "
    "twice.",
}
"""By the topic that a finding names: more to the point than its cause or the call."""

TOPICS_OF_ASYNCIO = frozenset({"terminal-input", "full-pipe", "empty-pipe", "held-lock"})
"""These name asyncio's ways; on other loops the cause's own way is told."""
