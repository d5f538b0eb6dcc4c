"""The ways out in the words of loops other than asyncio's: one line a row."""

from __future__ import annotations

from collections.abc import Mapping

from loopcanary.words.remedies.remedy import Remedy, Way

OTHER = "other"
"""The rows for a loop that no row is for."""
ALIASES: Mapping[str, str] = {
    "uvloop": "asyncio",
    "anyio": "trio",
    "pyqt": "qt",
    "pyside": "qt",
    "gtk": "glib",
}
"""Kinds of loops that get the advice of another one, by what their names begin with."""

# fmt: off
_WORDS: Mapping[str, Mapping[Way, str]] = {
    "trio": {
        Way.TIMER: "Wait with `await trio.sleep(...)` (anyio: `await anyio.sleep(...)`) in place of `{call}`.",
        Way.THREAD: "Run `{call}` with `await trio.to_thread.run_sync(...)` (anyio: `anyio.to_thread.run_sync`).",
        Way.PROCESS: "Run `{call}` in a process (anyio: `await anyio.to_process.run_sync(...)`): it holds the GIL.",
        Way.PIECES: "Cut the work up with `await trio.lowlevel.checkpoint()` between the pieces, or use a process.",
        Way.CHILD: "Use `await trio.run_process(...)` (anyio: `await anyio.run_process(...)`).",
        Way.RESOLVE: "Resolve names with `await trio.socket.getaddrinfo(...)` (anyio: `anyio.getaddrinfo`).",
        Way.CLIENT: "Use a client that runs on trio (httpx.AsyncClient), or `await trio.to_thread.run_sync(...)`.",
        Way.HANDOVER: "Let the thread hand its result over with `trio.from_thread.run_sync`, or use a trio channel.",
        Way.INPUT: "Read the terminal with `await trio.to_thread.run_sync(input)`.",
        Way.WATCH: "Wait with `await trio.lowlevel.wait_readable(...)` before `{call}`, or run it with `await trio.to_thread.run_sync(...)`.",
    },
    "qt": {
        Way.TIMER: "Use `QTimer.singleShot` in place of `{call}`: it lets the interface run meanwhile.",
        Way.THREAD: "Run `{call}` in a `QThreadPool` or `QThread`, and bring the result back by a signal.",
        Way.PROCESS: "It holds the GIL, so that a QThread does not help: run `{call}` in another process.",
        Way.PIECES: "Cut the work into pieces and start each by a `QTimer` of 0 ms; what touches no widget may run in another process.",
        Way.CHILD: "Start the child with `QProcess` and connect to its `finished` signal.",
        Way.RESOLVE: "Resolve names with `QHostInfo.lookupHost`, which answers by a signal.",
        Way.CLIENT: "Use `QNetworkAccessManager`, or run `{call}` in a `QThreadPool` and answer by a signal.",
        Way.HANDOVER: "Do not wait for threads: let the thread emit a signal when it is done.",
        Way.INPUT: "Read the terminal on another thread, or by a `QSocketNotifier`.",
        Way.WATCH: "Watch the descriptor with a `QSocketNotifier`, or run `{call}` on another thread.",
    },
    "tk": {
        Way.TIMER: "Use `widget.after(...)` in place of `{call}`: it lets the window run meanwhile.",
        Way.THREAD: "Run `{call}` on another thread and poll a queue for the result with `widget.after`.",
        Way.PROCESS: "It holds the GIL, so that a thread does not help: run `{call}` in another process.",
        Way.PIECES: "Cut the work into pieces that `widget.after(0, ...)` runs one by one; what touches no widget may run in another process.",
        Way.CHILD: "Start the child with `subprocess.Popen` and look at `poll()` from `widget.after`.",
        Way.RESOLVE: "Resolve the name on another thread and poll a queue for it with `widget.after`.",
        Way.CLIENT: "Do it on another thread and poll a queue for the answer with `widget.after`.",
        Way.HANDOVER: "Do not wait for threads: poll a `queue.Queue` with `get_nowait` from `widget.after`.",
        Way.INPUT: "Read the terminal on another thread and hand lines over by a queue.",
        Way.WATCH: "Watch the descriptor with `widget.tk.createfilehandler(...)`, or run `{call}` on another thread.",
    },
    "glib": {
        Way.TIMER: "Use `GLib.timeout_add` in place of `{call}`: it lets the interface run meanwhile.",
        Way.THREAD: "Run `{call}` on another thread and hand the result back with `GLib.idle_add`.",
        Way.PROCESS: "It holds the GIL, so that a thread does not help: run `{call}` in another process.",
        Way.PIECES: "Cut the work into pieces that `GLib.idle_add` runs one by one; what touches no widget may run in another process.",
        Way.CHILD: "Start the child with `Gio.Subprocess` and `wait_async`.",
        Way.RESOLVE: "Resolve names with `Gio.Resolver.lookup_by_name_async`.",
        Way.CLIENT: "Use libsoup's or Gio's `_async` calls, or a thread with `GLib.idle_add`.",
        Way.HANDOVER: "Do not wait for threads: let them hand their result over with `GLib.idle_add`.",
        Way.INPUT: "Watch the descriptor with `GLib.io_add_watch`, or read it on another thread.",
        Way.WATCH: "Watch the descriptor with `GLib.io_add_watch`, or run `{call}` on another thread.",
    },
    "gevent": {
        Way.TIMER: "Patch with `gevent.monkey.patch_all()` before all imports, or use `gevent.sleep`.",
        Way.THREAD: "Run `{call}` with `gevent.get_hub().threadpool.apply(...)`.",
        Way.PROCESS: "It holds the GIL, so that the thread pool does not help: run `{call}` in another process.",
        Way.PIECES: "Cut the work up with `gevent.sleep(0)` between the pieces, or run it in another process.",
        Way.CHILD: "Use `gevent.subprocess`, or patch with `gevent.monkey.patch_all(subprocess=True)`.",
        Way.RESOLVE: "Patch with `gevent.monkey.patch_all()`, so that names are resolved by gevent's resolver.",
        Way.CLIENT: "Patch with `gevent.monkey.patch_all()` before all imports; for drivers in C, use its thread pool.",
        Way.HANDOVER: "Use gevent's Event, Queue and AsyncResult; a lock is gevent's only if it was made after `gevent.monkey.patch_all()`.",
        Way.INPUT: "Read the terminal with `gevent.fileobject`, or in the hub's thread pool.",
        Way.WATCH: "Wait with `gevent.socket.wait_read(...)` before `{call}`, or run it in the hub's thread pool.",
    },
    "twisted": {
        Way.TIMER: "Use `reactor.callLater(...)` in place of `{call}`, or `await deferLater(reactor, ...)`.",
        Way.THREAD: "Run `{call}` with `deferToThread(...)` of twisted.internet.threads.",
        Way.PROCESS: "It holds the GIL, so that `deferToThread` does not help: run `{call}` in another process.",
        Way.PIECES: "Cut the work into pieces with `twisted.internet.task.cooperate`, or use a process.",
        Way.CHILD: "Start the child with `reactor.spawnProcess`, or `getProcessOutput` of twisted.internet.utils.",
        Way.RESOLVE: "Resolve names with `reactor.resolve(...)`, which answers by a Deferred.",
        Way.CLIENT: "Use `twisted.web.client.Agent` or treq for HTTP, an endpoint for sockets, or `deferToThread(...)`.",
        Way.HANDOVER: "Do not wait for threads: let them call `reactor.callFromThread(...)`, or use a DeferredLock or DeferredQueue.",
        Way.INPUT: "Read the terminal with `twisted.internet.stdio.StandardIO`.",
        Way.WATCH: "Let the reactor watch the descriptor with `reactor.addReader(...)`, or run `{call}` with `deferToThread(...)`.",
    },
    "thread": {
        Way.TIMER: "`{call}` blocks the thread: wait for the event itself, or put the rest of the work into a queue for later.",
        Way.THREAD: "Run `{call}` in parallel, on an executor's thread, or put it into a job queue.",
        Way.PROCESS: "Put `{call}` into a job queue that another process serves: it holds the GIL, and other threads wait too.",
        Way.PIECES: "Do less here, keep the result, or put it into a job queue that another process serves.",
        Way.CHILD: "Give the child a timeout, or wait for it in a job of a job queue.",
        Way.RESOLVE: "Resolve the name once and keep the address, or give the lookup a timeout.",
        Way.CLIENT: "Give the call a timeout, keep connections open in a pool, or make it in a job of a job queue.",
        Way.HANDOVER: "Wait for less, or with a timeout.",
        Way.INPUT: "Read the terminal on another thread.",
        Way.WATCH: "Run `{call}` on a thread of its own that hands over what it reads.",
    },
    "pygame": {
        Way.TIMER: "Leave `{call}` out of the frame: note when it is due and look at the clock each frame, or use `pygame.time.set_timer`.",
        Way.THREAD: "Move `{call}` out of the frame: before the game or the level begins, or to another thread whose result a later frame takes from a queue.",
        Way.PROCESS: "Move `{call}` out of the frame: before the level begins, or to another process; it holds the GIL, so that a thread does not help.",
        Way.PIECES: "Move it out of the frame: make it before the level begins and keep the result, or do a part of that in each frame.",
        Way.CHILD: "Start the child with `subprocess.Popen` and look at `poll()` once a frame.",
        Way.RESOLVE: "Resolve the name on another thread, before it is needed, and look for the result once a frame.",
        Way.CLIENT: "Move it out of the frame: do it on another thread and look for the answer in a queue once a frame.",
        Way.HANDOVER: "Do not wait in the frame: look at a `queue.Queue` with `get_nowait` once a frame.",
        Way.INPUT: "Read the terminal on another thread and look for its lines in a queue once a frame.",
        Way.WATCH: "Ask once a frame with `select.select(..., 0)` whether there is something to read, or run `{call}` on another thread.",
    },
    "other": {
        Way.TIMER: "Replace `{call}` with a timer of the loop: it lets the loop run meanwhile.",
        Way.THREAD: "Run `{call}` on another thread and hand the result back to the loop.",
        Way.PROCESS: "It holds the GIL, so that a thread does not help: run `{call}` in another process.",
        Way.PIECES: "Cut the work into pieces that the loop runs one by one, or run it in another process.",
        Way.CHILD: "Wait for the child on another thread, or by a signal of the loop.",
        Way.RESOLVE: "Resolve the name on another thread.",
        Way.CLIENT: "Do it on another thread and hand the result back to the loop.",
        Way.HANDOVER: "Do not wait for threads here: let them hand their result to the loop.",
        Way.INPUT: "Read the terminal on another thread.",
        Way.WATCH: "Let the loop watch the descriptor, or run `{call}` on another thread.",
    },
}
# fmt: on

LOOPS: tuple[Remedy, ...] = tuple(
    Remedy(f"{loop}.{way.name.lower()}", text, way, loop=loop)
    for loop, words in _WORDS.items()
    for way, text in words.items()
)
