"""The engine of this process, put together: what it takes to be armed, to see the first loop begin.

What runs from then on is in `engine`, and is not loaded before.
"""

from __future__ import annotations

import os

from loopcanary.assembly import is_main_interpreter, native_module
from loopcanary.config import usual_store
from loopcanary.engine import Boundary, say_what_is_missing, without_threads
from loopcanary.engine.attachment import follow, tell_exit
from loopcanary.engine.canary import Canary
from loopcanary.facts import library_folders, working_folder
from loopcanary.model.config import NATIVE, OFF, ON, PORTABLE, Config
from loopcanary.registry import INTEGRATIONS, LOOPS, REGISTRY
from loopcanary.whose_stderr import may_speak, own_stderr_file

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.engine.apart import Apart
    from loopcanary.engine.canary import Engine
    from loopcanary.integrations.installed import Integrations
    from loopcanary.protocols.loops import PortableSide, Probe, Windows
    from loopcanary.protocols.tracing import Tracers

_EXECUTORS = "concurrent.futures.thread"
_PIPE_BUF = 4096
"""What polls as writable takes this much without blocking (pipe(7))."""


def make_canary(config: Config, *, says_why_not: bool) -> Canary | None:
    """A canary for this process, not yet armed; None in a subinterpreter. Reads the extension's file only."""
    boundary = Boundary(_say_nothing if config.console == OFF or not may_speak() else _sayer())
    native, reason = _native_module(config.engine)
    if native is None and not is_main_interpreter():
        # Patches and signals are the process's; and one that ends while it has threads of ours aborts that.
        if says_why_not:
            boundary.tell("subinterpreters are not watched")
        return None
    if native is None and config.engine == NATIVE:
        boundary.failed("native engine", RuntimeError(f"{reason}; the portable one is used"))
    REGISTRY.failed = boundary.failed
    config = without_threads(config, boundary)
    store, notice, is_usable = _store(config)
    # Absolute from here on: children store in the same place wherever they change to.
    canary = Canary(
        config.replaced(store=store),
        native=native,
        make_probes=_all_probes,
        make_engine=_engine,
        boundary=boundary,
    )
    REGISTRY.imports = lambda part, imports: _apart(canary, native).load(part, imports)
    if config.methods:
        _trace_calls(canary, native)
    if native is not None:
        canary.run_errand = lambda: _run_errand(canary, native)
    if native is None:
        say_what_is_missing(config, boundary)
    if notice is not None:
        boundary.tell(notice)
    if not is_usable:
        boundary.switch_off("store")  # that has been said
    follow(canary)
    return canary


def _store(config: Config) -> tuple[str, str | None, bool]:
    """The store's folder, a sentence for people where it is not where they expect, and whether it is of
    use. Most programs have it in the usual place."""
    folder = usual_store(config)
    if folder is not None:
        return folder, None, True
    from loopcanary.store.location import locate

    location = locate(config.store)
    return str(location.folder.absolute()), location.notice, location.is_usable


def _sayer() -> Callable[[str], object]:
    """Says a line on stderr, while that is what it is now."""
    stderr = own_stderr_file()

    def say(line: str) -> object:
        if own_stderr_file() != stderr:
            return False
        try:
            from loopcanary.reporters.terminal import Terminal
        except ImportError:
            return _write_plainly(line)
        return Terminal().write(line)

    return say


def _write_plainly(line: str) -> object:
    """Loopcanary's own files are gone: the environment was removed beside the program."""
    import select

    poll = select.poll()
    poll.register(2, select.POLLOUT)
    return poll.poll(0) and os.write(2, line.encode("utf-8", "backslashreplace")[:_PIPE_BUF])


def _trace_calls(canary: Canary, native: Native | None) -> None:
    if native is None:
        canary.boundary.tell("methods are not traced: the portable engine cannot")
        return
    from loopcanary.assembly.tracing.methods import SwitchedCalls
    from loopcanary.tracers.methods import CallsTracer

    config = canary.config
    tell, slow_ns = canary.boundary.tell, config.slow_method_ns
    tracer = CallsTracer(native, config.methods, config.methods_ring, tell, slow_ns)
    canary.calls = SwitchedCalls(tracer, canary)


def _run_errand(canary: Canary, native: Native) -> None:
    from loopcanary.assembly.errands.inside import run_errand

    run_errand(canary, native)


def _say_nothing(line: str) -> None:
    """Where the program's own output shall be all there is."""


def _native_module(choice: str) -> tuple[Native | None, str]:
    """The extension, or None and why it is not used."""
    if choice == PORTABLE:
        return None, "the portable engine was asked for"
    try:
        return native_module(), ""
    except ImportError as error:
        return None, f"the native engine is not available: {error}"


def _all_probes(canary: Canary, native: Native | None) -> Sequence[Probe]:
    exits = [] if native is None else [_LateExit(canary, native)]
    return [*_probes(canary, native), _LateIntegrations(canary, native), *exits]


class _LateExit:
    """Stands for executors of threads: at the end of the program they wait before any other that has asked
    `threading` to be called then, so that the watchdog has to be told again."""

    kind = "exit"

    def __init__(self, canary: Canary, native: Native) -> None:
        from loopcanary.probes import ImportWatch

        self._watch = ImportWatch(
            _EXECUTORS, lambda: canary.boundary.call("exit", lambda: tell_exit(native, _EXECUTORS))
        )

    def install(self) -> None:
        """Idempotent."""
        self._watch.cancel()
        self._watch.start()

    def uninstall(self) -> None:
        """What `threading` was asked for stays. Idempotent."""
        self._watch.cancel()


class _LateIntegrations:
    """Stands for the integrations until one of their libraries is imported."""

    kind = "integrations"

    def __init__(self, canary: Canary, native: Native | None) -> None:
        from loopcanary.probes import ImportWatch

        self._loaded: Integrations | None = None
        self._make: Callable[[], Integrations] = lambda: _integrations(canary, native)
        libraries = [library.awaits for _, library in REGISTRY.loaded(INTEGRATIONS)]
        self._watch = ImportWatch(libraries, lambda: canary.boundary.call("integrations", self._load))

    def _load(self) -> None:
        self._loaded = self._make()
        self._loaded.install()

    def install(self) -> None:
        """Idempotent."""
        if self._loaded is None:
            self._watch.cancel()
            self._watch.start()
        else:
            self._loaded.install()

    def uninstall(self) -> None:
        """Takes back what is still ours. Idempotent."""
        self._watch.cancel()
        if self._loaded is not None:
            self._loaded.uninstall()


def _probes(canary: Canary, native: Native | None) -> Sequence[Probe]:
    from loopcanary.probes import LateProbe

    def containing(kind: str, is_ours: bool = True) -> Callable[[Callable[[], None]], object]:
        return _contained(canary, native, f"probe {kind}", is_ours=is_ours)

    side = native or _portable_side(canary)
    loops = [
        LateProbe(
            kind,
            side,
            canary.loop_seen,
            containing(kind.kind, one.is_built_in),
            lambda: _tracers(canary),
            windows=None if native is None else _windows,
            probe=probe,
        )
        for one, kind in REGISTRY.loaded(LOOPS)
        if (probe := kind.portable if native is None else kind.probe) is not None
    ]
    return loops if native is None else [*loops, _answers(canary, native, containing("answers"))]


def _integrations(canary: Canary, native: Native | None) -> Integrations:
    """All of them, not yet installed."""
    from loopcanary.assembly.kept import CELLS_HERE
    from loopcanary.engine import scopes
    from loopcanary.integrations.installed import Integrations
    from loopcanary.integrations.telling import Telling
    from loopcanary.probes import ImportWatch

    tell = Telling(
        scopes,
        canary.loop_seen,
        lambda: _tracers(canary),
        job_threshold_ns=canary.config.job_threshold_ns,
        ends=canary.stop,
        judges=lambda: canary.take_over(CELLS_HERE),
        starts=canary.start,
        engine=native,
    )

    theirs = {library.name for one, library in REGISTRY.loaded(INTEGRATIONS) if not one.is_built_in}

    def contain(name: str, patch: Callable[[], Any]) -> None:
        _contained(canary, native, f"integration {name}", is_ours=name not in theirs)(patch)

    return Integrations(tell, ImportWatch, contain)


def _contained(
    canary: Canary, native: Native | None, part: str, *, is_ours: bool
) -> Callable[[Callable[[], Any]], object]:
    """What calls patches of libraries, on the importing thread."""
    if is_ours:
        return lambda patch: canary.boundary.call(part, patch)
    return lambda patch: canary.boundary.call(part, lambda: _apart(canary, native).named(part, patch))


def _apart(canary: Canary, native: Native | None) -> Apart:
    from loopcanary.engine.apart import Apart

    return Apart(native, canary.boundary.tell)


def _portable_side(canary: Canary) -> PortableSide:
    from loopcanary.portable.turns import CanaryTurns

    return CanaryTurns(canary)


def _answers(canary: Canary, native: Native, contain: Callable[[Callable[[], None]], object]) -> Probe:
    from loopcanary.probes import AnswersProbe

    canary.tracing.before_figures = lambda: _trace_answers(canary, native)
    return AnswersProbe(native, contain)


def _trace_answers(canary: Canary, native: Native) -> None:
    """Tracers are made for the first answer that was timed: most programs are no servers."""
    if canary.tracing.traces is None and not native.answers():
        return
    from loopcanary.assembly.tracing.all import tracing_of
    from loopcanary.probes import answer_figures

    tracing_of(canary).input_elsewhere = lambda: answer_figures(native)


def _tracers(canary: Canary) -> Tracers:
    """Made when the first probe asks for them: most programs draw nothing."""

    def make() -> Tracers:
        from loopcanary.assembly.tracing.all import tracing_of

        return tracing_of(canary)

    tracers: Tracers = make() if canary.tracing.traces is not None else canary.load(make)
    return tracers


def _windows() -> Windows:
    """As _tracers: for the first toolkit with windows."""
    from loopcanary.tracers.titles import Titles

    return Titles()


def _engine(canary: Canary, native: Native | None) -> Engine:
    from loopcanary.assembly import kept

    if native is not None and canary.config.console != OFF and may_speak():
        folders = (working_folder() or "/", *library_folders()) if canary.config.console == ON else ()
        native.speaks(*own_stderr_file(), tuple(map(os.fsencode, folders)))
    is_store_usable = not canary.boundary.is_off("store")
    canary.no_keeper = canary.no_keeper or kept.no_keeper(
        canary.config, is_native=native is not None, is_store_usable=is_store_usable
    )
    if canary.no_keeper is None and native is not None:
        return kept.make_kept(canary, native)
    from loopcanary.assembly.judging import make_judging

    return make_judging(canary, native)
