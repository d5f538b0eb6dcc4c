"""A flight recorder for event loops: sees every stall of the thread that must not block, names the line and
the cause, and keeps the evidence even if the process is killed during the stall.

    import loopcanary
    canary = loopcanary.install(threshold="100ms")

or, with no change to the program, `loopcanary run app.py`. See README.md and docs/.

Importing this package imports nothing else; `install` does.

PYTEST_DONT_REWRITE: or pytest, which loads a plugin of ours, warns where this is loaded before it.
"""

from __future__ import annotations

import _thread
import os as _os

TYPE_CHECKING = False  # typing is not loaded for it: every watched interpreter imports this
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from loopcanary.engine.canary import Canary
    from loopcanary.engine.scopes import expect, scene, watch
    from loopcanary.model import Issue, ShownFrame, TracerState, TracerStatus

__all__ = [
    "expect",
    "install",
    "list_tracers",
    "no_stall",
    "on_frame",
    "on_issue",
    "on_tracer",
    "scene",
    "start_tracers",
    "statistics",
    "stop_tracers",
    "uninstall",
    "watch",
]

_lock = _thread.RLock()
_fork_is_hooked = False
_canary: Canary | None = None
_when_used: Callable[[], None] | None = None
"""Starts the engine where it waits for a loop that may never come."""
_begun_ns = 0
"""When the startup hook ran, monotonic; 0: the program called `install`."""
_variables: dict[str, str | None] = {}
"""The environment before the settings in force were put into it, for children."""


def install(*, _from_startup: bool = False, **settings: Any) -> Canary | None:
    """Starts to watch this process.

    Loops that already run and loops made later are watched. Unless `follow_children` is off, so are child
    processes, which get the settings by LOOPCANARY variables in os.environ, and a folder first on their
    PYTHONPATH that starts loopcanary. Any thread may call it.

    Args:
        settings: by the names of docs/reference/settings.md, such as `threshold="100ms"`,
            `store=".loopcanary"`, `concern=["app"]`. Others come from the environment, loopcanary.toml or
            pyproject.toml, and the defaults.

    Returns:
        The canary of this process, the same one if it is watched already. None with LOOPCANARY=0 in the
        environment, which switches everything off, and in a subinterpreter, which is not watched.

    Raises:
        ConfigError: a ValueError that names the bad setting and its place.
    """
    global _canary  # noqa: PLW0603 - one engine a process
    if _os.environ.get("LOOPCANARY") == "0":
        return None
    _renew_lock_after_forks()
    with _lock:
        if _canary is not None and settings and not _canary.is_running:
            uninstall()  # armed by LOOPCANARY=1, and the program knows better
        if _canary is None:
            from loopcanary.assembly.agent import make_canary
            from loopcanary.config import load

            config = load(**settings)
            if _from_startup and not config.follow_children and _is_child():
                return None
            _canary = make_canary(config, says_why_not=not _from_startup)
            if _canary is None:
                return None
            _tell_children(_canary)
            _canary.begun_ns = _begun_ns
        # A child process starts its engine when it runs a loop. The program itself starts it now, before any
        # of its own code has run; so does one whose start is recorded, whose crashes are noted, or that a
        # service manager watches.
        is_by_run = _os.environ.get("LOOPCANARY_RUN_PID") == str(_os.getpid())
        is_noted = _canary.config.startup or _canary.config.notes_crashes
        is_first = is_by_run or is_noted or _feeds_manager(_canary)
        if not _from_startup or is_first:
            _canary.start()
            _canary.settle()
        _canary.arm()
        return _canary


def _feeds_manager(canary: Canary) -> bool:
    """Whether a service manager waits for signs of life of this very process."""
    if not canary.config.sd_watchdog:
        return False
    from loopcanary.engine.recorder import feed_wanted

    return feed_wanted(_os.environ) is not None


def uninstall() -> tuple[str, ...]:
    """Stops watching: stores the last stalls, undoes every patch, ends the threads. Idempotent.

    Returns:
        What is still in place (docs/reference/patches.md): what other tools have patched over since, and
        hooks that cannot be taken back. Empty where nothing was watched.
    """
    global _canary
    with _lock:
        canary, _canary = _canary, None
        if canary is None:
            return ()
        canary.stop()
        for name, value in _variables.items():
            if value is None:
                _os.environ.pop(name, None)
            else:
                _os.environ[name] = value
        _variables.clear()
        _lead_children(_os.environ, to_us=False)
        from loopcanary.patches import left

        return left()


def load_ipython_extension(shell: Any) -> None:  # noqa: ARG001 - as IPython calls it
    """`%load_ext loopcanary`: watches the kernel, and prints below a cell what stalled in it."""
    install(console="on")


def unload_ipython_extension(shell: Any) -> None:  # noqa: ARG001 - as IPython calls it
    """`%unload_ext loopcanary`."""
    uninstall()


def _tell_children(canary: Canary) -> None:
    """Puts the settings and the store in force into the environment, for children that start Python anew."""
    from loopcanary.config import settings_as_environment
    from loopcanary.whose_stderr import STDERR, own_stderr

    told = settings_as_environment(canary.config)
    if canary.config.follow_children:
        told["LOOPCANARY"] = "1"
        _lead_children(_os.environ, to_us=True)
    else:
        told["LOOPCANARY_ROOT_PID"] = str(_os.getpid())
    if canary.config.console == "on" and STDERR not in _os.environ:
        told[STDERR] = own_stderr()
    for name, value in told.items():
        _variables[name] = _os.environ.get(name)
        _os.environ[name] = value


def _lead_children(environ: MutableMapping[str, str], *, to_us: bool) -> None:
    """Puts the folder of our sitecustomize first on PYTHONPATH, or takes it off. Frozen programs lack it."""
    folder = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "_bootstrap")
    before = environ.get("PYTHONPATH")
    path = [each for each in before.split(_os.pathsep) if each != folder] if before else []
    if to_us and _os.path.isdir(folder):
        path.insert(0, folder)
    if path:
        environ["PYTHONPATH"] = _os.pathsep.join(path)
    elif before:
        del environ["PYTHONPATH"]


def _is_child() -> bool:
    """Whether a process above this one is watched, and its children are not to be."""
    return _os.environ.get("LOOPCANARY_ROOT_PID", str(_os.getpid())) != str(_os.getpid())


def _renew_lock_after_forks() -> None:
    """A thread that the child does not have may hold it."""
    global _fork_is_hooked  # noqa: PLW0603 - once a process: fork hooks stay

    def renew() -> None:
        global _lock  # noqa: PLW0603 - one engine a process
        _lock = _thread.RLock()

    if not _fork_is_hooked and hasattr(_os, "register_at_fork"):
        _fork_is_hooked = True
        _os.register_at_fork(after_in_child=renew)


def on_issue(interceptor: Callable[[Issue], Issue | None]) -> Callable[[Issue], Issue | None]:
    """Decorator: has each issue seen, changed or dropped before it is stored and reported.

    Args:
        interceptor: gets the issue; returns it, a changed one (dataclasses.replace), or None to drop it.
            Called on the drain thread. One that raises is switched off, and logged once.

    From then on the program judges its stalls itself, in place of a keeper (docs/how-to/keeper.md): a thread
    loads what that takes, at once.

    Returns:
        The interceptor.
    """
    from loopcanary.registry import REGISTRY

    REGISTRY.add_interceptor(interceptor)
    canary = _canary
    if canary is not None and canary.kept is not None:
        from loopcanary.assembly.kept import sees_stalls

        canary.take_over(sees_stalls("on_issue"))
    return interceptor


def on_frame(
    listener: Callable[[ShownFrame], object], *, on_thread: bool = False
) -> Callable[[ShownFrame], object]:
    """Decorator: calls the listener for each frame that a window, screen or game shows.

    Args:
        listener: gets a `loopcanary.model.ShownFrame`: scene, time, dropped frames. One that raises is
            switched off, and logged once.
        on_thread: call it a little later on a thread of loopcanary's; else on the thread that draws.

    Returns:
        The listener.
    """
    from loopcanary.registry import REGISTRY, FrameListener

    REGISTRY.add_frame_listener(FrameListener(listener, on_thread))
    return listener


def list_tracers() -> tuple[TracerStatus, ...]:
    """The tracers of this process, in the order in which they were made: built-in and plugged-in ones. One of
    frames, input or idle work is made when a loop has some to report.

    Returns:
        Name, state, why it was switched off, and how long its steps took. Empty if nothing is watched.
    """
    if _canary is None:
        return ()
    from loopcanary.assembly.tracing.steps import statuses

    return statuses(_canary)


def start_tracers(*names: str) -> dict[str, str]:
    """Starts tracers that were stopped. On this thread; raises nothing.

    Args:
        names: which; none: all that are not started.

    Returns:
        Why each that is not started by this is not, by name: it is already started, it has failed, it is not
        there. Empty where all is well.
    """
    return _step_tracers("start", names)


def stop_tracers(*names: str) -> dict[str, str]:
    """Stops tracers: each takes back what it has put into the program, and stays stopped, in forked children
    too. What it has reported stays. On this thread; raises nothing.

    Args:
        names: which; none: all that are started.

    Returns:
        As `start_tracers`.
    """
    return _step_tracers("stop", names)


def _step_tracers(step: str, names: tuple[str, ...]) -> dict[str, str]:
    canary = _canary
    if canary is None:
        return dict.fromkeys(names, "nothing is watched")
    from loopcanary.assembly.tracing.steps import make_step
    from loopcanary.model.tracer_states import TracerStep

    return make_step(canary, TracerStep(step), names)


def on_tracer(
    listener: Callable[[str, TracerState], object],
) -> Callable[[str, TracerState], object]:
    """Decorator: calls the listener when a tracer was inited, started, stopped or destroyed.

    Args:
        listener: gets the tracer's name and its new state. Called on the thread that made the step. One that
            raises is switched off, and logged once.

    Returns:
        The listener.
    """
    from loopcanary.registry import REGISTRY

    REGISTRY.add_tracer_listener(listener)
    return listener


def statistics() -> dict[str, Any]:
    """Counters of loopcanary itself.

    Returns:
        Samples, drops with reasons, overhead (`_ns`: nanoseconds); `loops`: the figures of each watched
        thread, as in `loopcanary report --format json`; `frames`, `input`, `idle` as there. Empty if nothing
        is watched.
    """
    return {} if _canary is None else _canary.statistics()


def __getattr__(name: str) -> Any:
    if name in {"scene", "watch", "expect"}:
        from loopcanary.engine import scopes

        if _when_used is not None:
            _when_used()
        return getattr(scopes, name)
    if name == "no_stall":
        from importlib import import_module

        return import_module("loopcanary.pytesting.block").no_stall  # which imports this module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
