"""What the engine ties to the interpreter: stamps of collections, who listens to scopes, forks, ends."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import atexit
import gc
import os
import sys
from _thread import get_native_id

from loopcanary.patches import ON, Patches, note

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar
    from typing import Any, Protocol

    from loopcanary._native import Native
    from loopcanary.protocols.engine import ScopeListener

    class ForkListener(Protocol):
        """What is called. No method raises."""

        def before_fork(self) -> None:
            """On the forking thread; nothing of the program runs in between."""

        def after_fork_in_parent(self) -> None:
            """On the forking thread, also where there is no child."""

        def after_fork_in_child(self) -> None:
            """On the only thread there is."""

        def stop(self) -> None:
            """The process ends."""


FORK_PATIENCE_S = 0.1
"""How long a fork waits for each of our threads. One that does not end in time goes on beside the fork."""
# All others in `os` call these.
_ENDS = ("_exit", "execv", "execve")
_NAMESPACES = ("unshare", "setns")
_USERS = (
    *("setuid", "seteuid", "setreuid", "setresuid", "setgid", "setegid", "setregid", "setresgid"),
    *("setgroups", "initgroups"),
)
_PRIORITIES = ("nice", "setpriority", "sched_setaffinity", "sched_setparam", "sched_setscheduler")
_CHANGES_MAX = 16
_CALL_MAX = 200
priority_changes: list[dict[str, Any]] = []
"""Of this process: see model.PriorityChange, in its form on the wire."""
_patches = Patches()
"""Functions of `os`: ends of the process that no exit handler sees, what changes how a thread is scheduled,
and what takes it into other namespaces or gives it other users."""


class Attachment:
    """`native`: None for the portable engine."""

    def __init__(self, native: Native | None) -> None:
        self._native = native
        self._before_workers_exit: Any = None

    def begin(
        self, listener: ScopeListener, stop: Callable[[], None], facts_changed: Callable[[], object]
    ) -> None:
        """`stop`: what ends the engine before a worker of multiprocessing does. `facts_changed`:
        `priority_changes` has one more."""
        if self._native is not None:
            gc.callbacks.append(self._native.gc_stamp)
            _patches.hook("gc.callbacks")
            # False where asyncio is not imported yet: then its probe does this when it patches it.
            self._native.learn_asyncio()
            _note_ends(self._native)
            _note_priorities(self._native, facts_changed)
            _rest_around_changes(self._native)
        connect(listener)
        self._before_workers_exit = _before_multiprocessing_exits(stop)

    def end(self) -> None:
        self.let_go()
        _patches.take_back()
        if self._before_workers_exit is not None:
            self._before_workers_exit.cancel()
            self._before_workers_exit = None

    def let_go(self) -> None:
        """In a forked child: what is more is undone by those who made it."""
        _News.facts_changed = None
        while self._native is not None and self._native.gc_stamp in gc.callbacks:
            gc.callbacks.remove(self._native.gc_stamp)


def _before_multiprocessing_exits(stop: Callable[[], None]) -> Any:
    """A forked worker of multiprocessing ends by os._exit, which runs its finalizers but no atexit. None in
    other processes."""
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is None or util is None or process.parent_process() is None:
        return None
    return util.Finalize(None, stop, exitpriority=-100)


def _note_ends(native: Native) -> None:
    """From now on they are noted. Idempotent."""
    for name in _ENDS:
        _patches.put(os, name, native.noted_end)


def _note_priorities(native: Native, facts_changed: Callable[[], object]) -> None:
    """From now on who changes how a thread is scheduled is noted. Idempotent."""
    if _News.process != os.getpid():  # a child begins anew: its threads are others
        _News.process = os.getpid()
        priority_changes.clear()
    _News.facts_changed = facts_changed
    for name in _PRIORITIES:
        _patches.put(os, name, lambda original: native.followed(original, _noting(original.__name__)))


def _rest_around_changes(native: Native) -> None:
    """From now on our threads rest while the main thread enters other namespaces or changes users and groups,
    and are started again with what it has by then. Idempotent.

    Only a process of one thread may enter a user namespace. The C library changes users and groups of all
    threads, and ends the process where the kernel's answers to them differ (nptl_setxid.c of glibc).
    """
    for name in (*_NAMESPACES, *_USERS):
        _patches.put(os, name, lambda original: native.rested(original, _before, _in_parent))


class _News:
    """Whom to call when `priority_changes` has one more entry."""

    facts_changed: Callable[[], object] | None = None
    """None: no engine runs."""
    process = 0
    """PID of the process that made the changes."""


def _noting(name: str) -> Callable[..., None]:
    def note(*args: Any, **named: Any) -> None:
        """On the thread that has called."""
        if _News.facts_changed is None or len(priority_changes) == _CHANGES_MAX:
            return
        caller = sys._getframe(1)  # noqa: SLF001 - what is in between is C
        words = (*map(repr, args), *(f"{key}={value!r}" for key, value in named.items()))
        change = {
            "call": f"os.{name}({', '.join(words)})"[:_CALL_MAX],
            "file": caller.f_code.co_filename,
            "line": caller.f_lineno,
            "function": caller.f_code.co_name,
            "tid": _target(name, (*args, *named.values())),
        }
        priority_changes.append(change)
        _News.facts_changed()

    return note


def _target(name: str, given: tuple[Any, ...]) -> int | None:
    """The thread that a call holds for; None: others, too."""
    if name == "setpriority":
        which, who, _ = given
        return (who or get_native_id()) if which == os.PRIO_PROCESS else None
    return get_native_id() if name == "nice" else given[0] or get_native_id()


class Ear:
    """Who listens to `scopes`, which is loaded by programs that use it; None while no engine runs."""

    listener: ScopeListener | None = None
    knows_scenes = False
    """Whether the listener knows that scenes are used."""


def connect(listener: ScopeListener | None) -> None:
    """The engine starts, or stops (None)."""
    Ear.knows_scenes = False
    Ear.listener = listener


def connect_at_work(start: Callable[[], object]) -> None:
    """The engine is armed: the first piece of work starts it, as the first loop does. `start` connects, and
    raises nothing. No effect where the engine runs."""
    if Ear.listener is None:
        Ear.listener = _Starter(start)


class _Starter:
    """Listens until there is an engine."""

    def __init__(self, start: Callable[[], object]) -> None:
        self._start = start

    def work_begin(self, name: str, /) -> Any:
        """Starts the engine, which has no lane for work that could not be begun."""
        self._start()
        listener = Ear.listener
        if listener is self:  # it could not be started; nor could it be the next time
            Ear.listener = None
        return None if listener is self or listener is None else listener.work_begin(name)

    def work_end(self, token: Any, /) -> None:
        """Nothing was begun here, or by the engine that is there by now."""
        listener = Ear.listener
        if listener is not None and listener is not self:
            listener.work_end(token)

    def set_scene(self, scene: str | None, /) -> None:
        """No work, no scene."""

    def use_scenes(self, variable: ContextVar[Any], /) -> None:
        """As set_scene."""

    def allow(self, nanoseconds: int, /) -> None:
        """The work that has just begun is the engine's by now."""
        listener = Ear.listener
        if listener is not None and listener is not self:
            listener.allow(nanoseconds)


class _Hooks:
    """Registered once in a process: a fork hook can never be taken back."""

    follower: ForkListener | None = None
    are_registered = False
    exit_is_told: set[str] = set()  # noqa: RUF012 - of the process


def follow(follower: ForkListener) -> None:
    """From now on `follower` is called, and no earlier one."""
    _Hooks.follower = follower
    if _Hooks.are_registered:
        return
    _Hooks.are_registered = True
    atexit.register(_at_exit)
    note(ON, "hook atexit, for good")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
        note(ON, "hook os.register_at_fork, for good")  # and that of `install`


def _before() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.before_fork()


def _in_parent() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.after_fork_in_parent()


def _in_child() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.after_fork_in_child()


def tell_exit(native: Native, after: str = "threading") -> None:
    """From now on the watchdog is told when the main thread's program is over: then it waits for threads, and
    exit functions run. It is told before what the module `after` does then. Idempotent. No effect where
    `threading` is not loaded, or has no such hook."""
    register = getattr(sys.modules.get("threading"), "_register_atexit", None)
    if register is None or after in _Hooks.exit_is_told:
        return
    try:
        register(lambda: native.exit_begins(_was_interrupted(), _handles_interrupts()))
    except RuntimeError:  # the program is over already
        return
    if not _Hooks.exit_is_told:
        note(ON, "hook threading._register_atexit, for good")
    _Hooks.exit_is_told.add(after)


def _at_exit() -> None:
    if _Hooks.follower is not None:
        was_interrupted = _was_interrupted()
        _Hooks.follower.stop()
        if was_interrupted:
            _say_interrupted()


def _was_interrupted() -> bool:
    """Whether an interrupt has ended the program: its traceback was printed, and begins at the bottom of the
    stack. Not in a console, where more may have followed."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)  # the latter before 3.12
    bottom = getattr(error.__traceback__, "tb_frame", None) if type(error) is KeyboardInterrupt else None
    return bottom is not None and bottom.f_back is None and not hasattr(sys, "ps1")


def _handles_interrupts() -> bool:
    """Whether the program has a handler of its own, which may end what its threads wait for."""
    handler = _signal.getsignal(_signal.SIGINT)
    return callable(handler) and handler is not _signal.default_int_handler


def _say_interrupted() -> None:
    """The interpreter ends such a program by the signal itself, if no text was executed since
    (run_eval_code_obj of Python/pythonrun.c). What is loaded for the end does that: named tuples."""
    try:  # noqa: SIM105 - contextlib is not loaded for it
        exec("raise KeyboardInterrupt")  # noqa: S102 - is to be text
    except KeyboardInterrupt:
        pass
