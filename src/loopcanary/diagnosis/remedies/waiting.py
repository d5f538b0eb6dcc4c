"""Remedies for waiting: time, threads, children, terminals and logs. Data."""

from __future__ import annotations

from loopcanary.diagnosis.remedies.kinds import LOCKS, Remedy, Way
from loopcanary.model import Cause

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        names=("time.sleep",),
        causes=frozenset({Cause.SLEEP, Cause.UNKNOWN}),
        way=Way.TIMER,
        asyncio="Replace `{call}` with `await asyncio.sleep(...)`: it lets the loop run meanwhile.",
    ),
    Remedy(
        modules=("tenacity", "backoff", "retrying", "retry"),
        causes=frozenset({Cause.SLEEP, Cause.UNKNOWN}),
        way=Way.TIMER,
        asyncio="Retry an `async def`: tenacity and backoff then wait with `asyncio.sleep`.",
    ),
    Remedy(
        names=("concurrent.futures.wait", "futures.wait", "futures.as_completed", "as_completed"),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Wrap each future by `asyncio.wrap_future` and await `asyncio.wait` or `asyncio.gather` of "
        "them.",
    ),
    Remedy(
        names=("executor.shutdown", "pool.shutdown"),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Shut the executor down by `await loop.run_in_executor(None, executor.shutdown)`, or after "
        "the loop.",
    ),
    Remedy(
        names=("executor.map",),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Submit with `loop.run_in_executor` and await `asyncio.gather` of the futures.",
    ),
    Remedy(
        names=("asyncio.run_coroutine_threadsafe", "run_coroutine_threadsafe"),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="On the loop's own thread, await the coroutine: waiting for it here never ends.",
    ),
    Remedy(
        names=("future.result", "fut.result", "f.result", "*.result", "future.exception"),
        modules=("concurrent.futures",),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Await the future: `await asyncio.wrap_future(future)`.",
    ),
    Remedy(
        names=("queue.get", "queue.put", "queue.join", "q.get", "q.put"),
        modules=("queue",),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Use `asyncio.Queue` inside the loop; from a thread, `loop.call_soon_threadsafe`.",
    ),
    Remedy(
        names=("process.join", "proc.join", "pool.join", "pool.map", "pool.starmap", "pool.apply"),
        modules=("multiprocessing",),
        way=Way.HANDOVER,
        asyncio="Use `await loop.run_in_executor(process_pool, ...)` in place of waiting for the process.",
    ),
    Remedy(
        names=("thread.join", "Thread.join", "worker.join", "t.join"),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Wait with `await asyncio.to_thread(thread.join)`, or start the work by `asyncio.to_thread`.",
    ),
    Remedy(
        names=("fcntl.flock", "fcntl.lockf", "portalocker.lock"),
        modules=("filelock", "portalocker", "fasteners"),
        causes=frozenset({Cause.LOCK, Cause.SLEEP, Cause.UNKNOWN}),
        way=Way.THREAD,
        asyncio="Wait for the file's lock with `await asyncio.to_thread(...)`, or try it without blocking.",
    ),
    Remedy(
        names=("event.wait", "ready.wait", "done.wait", "*.wait_for"),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Use `asyncio.Event`, set from threads by `loop.call_soon_threadsafe(event.set)`.",
    ),
    Remedy(
        names=("semaphore.acquire", "sem.acquire"),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Use `asyncio.Semaphore` inside the loop.",
    ),
    Remedy(
        names=("lock.acquire", "mutex.acquire", "condition.wait", "cond.wait", "barrier.wait", "*.acquire"),
        modules=("threading",),
        causes=LOCKS,
        way=Way.HANDOVER,
        asyncio="Use asyncio's Lock, Event or Condition inside the loop, and hold thread locks only briefly.",
    ),
    Remedy(
        names=("asgiref.sync.async_to_sync",),
        modules=("asgiref",),
        way=Way.HANDOVER,
        asyncio="Await the coroutine itself: `async_to_sync` blocks the thread that calls it.",
    ),
    Remedy(
        names=("subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output"),
        way=Way.CHILD,
        asyncio="Use `await asyncio.create_subprocess_exec(...)` and `await process.communicate()`.",
    ),
    Remedy(
        names=("subprocess.getoutput", "subprocess.getstatusoutput", "os.system", "os.popen"),
        way=Way.CHILD,
        asyncio="Use `await asyncio.create_subprocess_shell(...)` in place of `{call}`.",
    ),
    Remedy(
        names=("os.fork", "os.forkpty", "pty.fork"),
        way=Way.CHILD,
        asyncio="Fork before the program grows (a fork server), or start children with `posix_spawn`: a "
        "fork copies "
        "the page tables of all memory.",
    ),
    Remedy(
        names=("os.waitpid", "os.wait", "os.waitid", "process.wait", "proc.wait", "*.communicate"),
        modules=("subprocess",),
        way=Way.CHILD,
        asyncio="Start the child with `asyncio.create_subprocess_exec` and await `process.wait()`.",
    ),
    Remedy(
        names=("*.waitForStarted", "*.waitForFinished"),
        causes=frozenset({Cause.SUBPROCESS, Cause.UNKNOWN}),
        way=Way.CHILD,
        asyncio="Use `await asyncio.create_subprocess_exec(...)` and `await process.wait()`.",
    ),
    Remedy(
        modules=("sh", "plumbum", "invoke", "fabric", "pexpect", "git"),
        causes=frozenset({Cause.SUBPROCESS, Cause.NETWORK_IO, Cause.LOCK, Cause.UNKNOWN}),
        way=Way.CHILD,
        asyncio="Run the command with `await asyncio.create_subprocess_exec(...)`, or the call with "
        "`await asyncio.to_thread(...)`.",
    ),
    Remedy(
        names=(
            "input",
            "getpass.getpass",
            "sys.stdin.readline",
            "sys.stdin.read",
            "click.prompt",
            "typer.prompt",
        ),
        way=Way.INPUT,
        asyncio="Read the terminal with `await asyncio.to_thread(...)`, or prompt_toolkit's `prompt_async`.",
    ),
    Remedy(
        names=(
            "print",
            "sys.stdout.write",
            "sys.stderr.write",
            "stdout.flush",
            "rich.print",
            "console.print",
        ),
        causes=frozenset({Cause.DISK_IO, Cause.SUBPROCESS, Cause.NETWORK_IO, Cause.LOCK, Cause.UNKNOWN}),
        way=Way.THREAD,
        asyncio="Whoever reads the output is slow: print less, or through a queue that another thread "
        "writes out.",
    ),
    Remedy(
        modules=("logging.handlers",),
        causes=frozenset({Cause.NETWORK_IO, Cause.DNS, Cause.DISK_IO, Cause.SUBPROCESS, Cause.UNKNOWN}),
        way=Way.THREAD,
        asyncio="Put `logging.handlers.QueueHandler` before this handler: a `QueueListener` thread then "
        "does its I/O.",
    ),
    Remedy(
        modules=("logging", "loguru"),
        causes=frozenset({Cause.DISK_IO, Cause.NETWORK_IO, Cause.LOCK, Cause.SUBPROCESS}),
        way=Way.THREAD,
        asyncio="Log through `logging.handlers.QueueHandler` and a `QueueListener` thread (loguru: "
        "`enqueue=True`).",
    ),
    Remedy(
        modules=("sentry_sdk",),
        causes=frozenset({Cause.NETWORK_IO, Cause.LOCK, Cause.UNKNOWN}),
        way=Way.THREAD,
        asyncio="Do not `flush` on the loop: call `sentry_sdk.flush` with `asyncio.to_thread`, or at the "
        "end.",
    ),
)
