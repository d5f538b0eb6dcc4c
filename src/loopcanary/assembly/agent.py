"""The engine of this process, put together: what it takes to be armed, to see the first loop begin.

What runs from then on is in `engine`, and is not loaded before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loopcanary.assembly import extension
from loopcanary.engine import process_hooks
from loopcanary.engine.boundary import Boundary
from loopcanary.engine.canary import Canary
from loopcanary.model import Config, EngineChoice
from loopcanary.protocols.loops import PortableSide, Probe, Windows
from loopcanary.protocols.tracing import Tracers
from loopcanary.registry import LOOPS, REGISTRY
from loopcanary.reporters.terminal import Terminal
from loopcanary.reporters.whose_stderr import may_speak
from loopcanary.store.location import locate

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.engine.parts import EngineParts


def make_canary(config: Config, *, says_why_not: bool) -> Canary | None:
    """A canary for this process, not yet armed; None in a subinterpreter. Reads the extension's file only."""
    boundary = Boundary(_say_nothing if config.quiet or not may_speak() else Terminal().write)
    native, reason = _native_module(config.engine)
    if native is None and not extension.is_main_interpreter():
        # Patches and signals are the process's; and one that ends while it has threads of ours aborts that.
        if says_why_not:
            boundary.tell("subinterpreters are not watched")
        return None
    if native is None and config.engine is EngineChoice.NATIVE:
        boundary.failed("native engine", RuntimeError(f"{reason}; the portable one is used"))
    REGISTRY.failed = boundary.failed
    location = locate(config.store)
    # Absolute from here on: children store in the same place wherever they change to.
    canary = Canary(
        replace(config, store=location.folder.absolute()),
        native=native,
        make_probes=_all_probes,
        make_parts=_parts,
        boundary=boundary,
    )
    if location.notice:
        boundary.tell(location.notice)
    if not location.is_usable:
        boundary.switch_off("store")  # that has been said
    process_hooks.follow(canary)
    return canary


def _say_nothing(line: str) -> None:
    """Where the program's own output shall be all there is."""


def _native_module(choice: EngineChoice) -> tuple[Native | None, str]:
    """The extension, or None and why it is not used."""
    if choice is EngineChoice.PORTABLE:
        return None, "the portable engine was asked for"
    try:
        return extension.load(), ""
    except ImportError as error:
        return None, f"the native engine is not there: {error}"


def _all_probes(canary: Canary, native: Native | None) -> Sequence[Probe]:
    from loopcanary.assembly.integrations import integrations

    return [*_probes(canary, native), integrations(canary, native)]


def _probes(canary: Canary, native: Native | None) -> Sequence[Probe]:
    from loopcanary.probes.late import LateProbe

    def containing(kind: str) -> Callable[[Callable[[], None]], object]:
        return lambda patch: canary.boundary.call(f"probe {kind}", patch)

    side = native or _portable_side(canary)
    loops = [
        LateProbe(
            kind,
            side,
            canary.loop_seen,
            containing(kind.kind),
            lambda: _tracers(canary),
            windows=None if native is None else lambda: _windows(canary),
            probe=probe,
        )
        for _, kind in REGISTRY.loaded(LOOPS)
        if (probe := kind.portable if native is None else kind.probe) is not None
    ]
    return loops if native is None else [*loops, _answers(canary, native, containing("answers"))]


def _portable_side(canary: Canary) -> PortableSide:
    from loopcanary.portable.turns import CanaryTurns

    return CanaryTurns(canary)


def _answers(canary: Canary, native: Native, contain: Callable[[Callable[[], None]], object]) -> Probe:
    from loopcanary.probes.answers import AnswersProbe

    canary.tracing.before_figures = lambda: _trace_answers(canary, native)
    return AnswersProbe(native, contain)


def _trace_answers(canary: Canary, native: Native) -> None:
    """Tracers are made for the first answer that was timed: most programs are no servers."""
    if canary.tracing.traces is None and not native.answers():
        return
    from loopcanary.assembly.tracers import tracing_of
    from loopcanary.probes.answers import figures

    tracing_of(canary).input_elsewhere = lambda: figures(native)


def _tracers(canary: Canary) -> Tracers:
    """Made when the first probe asks for them: most programs draw nothing."""
    from loopcanary.assembly.tracers import tracing_of

    return tracing_of(canary)


def _windows(canary: Canary) -> Windows:
    """As _tracers: for the first toolkit with windows."""
    from loopcanary.tracers.titles import Titles

    return Titles(are_told=canary.config.window_titles)


def _parts(canary: Canary, native: Native | None) -> EngineParts:
    from loopcanary.assembly import engine

    return engine.make_parts(canary, native)
