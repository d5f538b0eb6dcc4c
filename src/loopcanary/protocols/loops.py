"""Probes, and what they are given: each tells the engine what one kind of loop does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.protocols.tracing import Tracers


class Probe(Protocol):
    """Tells the engine what one kind of loop does."""

    kind: str

    def install(self) -> None:
        """Patches the library, if it is there, or when it is imported. Idempotent; raises nothing into the
        program."""

    def uninstall(self) -> None:
        """Takes back what is still ours, and leaves what another tool has put over it. Idempotent."""


class LoopHooks(Protocol):
    """How a probe reports a loop that has hooks: the native engine's LoopHooks, or the portable one's
    (native/probes/hooks/loop_hooks.h). On the loop's thread; further arguments are ignored."""

    def run_begin(self, *ignored: object) -> None:
        """The loop begins to run on this thread: the first turn."""

    def run_end(self, *ignored: object) -> None:
        """The loop runs no more."""

    def wait_begin(self, *ignored: object) -> None:
        """The loop is about to wait: the turn is over."""

    def wait_end(self, *ignored: object) -> None:
        """The wait is over: the next turn."""

    def work_begin(self, work: object = None, *ignored: object) -> None:
        """A callback begins; `work` names it."""

    def work_end(self, *ignored: object) -> None:
        """The callback ends."""

    def works_end(self, *ignored: object) -> None:
        """All callbacks end that were begun in the innermost call of `around_works`."""

    def around_wait(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """What takes the function's place: its call is the loop's wait. Binds as functions do, as the others
        here."""

    def around_works(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Callbacks that were begun in the function's call end with it."""

    def around_work(
        self, function: Callable[..., Any], attribute: str, name_of: Callable[[type, type], str], /
    ) -> Callable[..., Any]:
        """The function's call is a callback. Of its second argument and of that one's attribute (or None) the
        types name it; `name_of` is asked for a name once."""


class PortableSide(Protocol):
    """What probes of the portable engine are given where those of the native one get the extension."""

    def LoopHooks(  # noqa: N802 - as the extension has it
        self, kind: str, loop_seen: Callable[[], object] | None = None, /
    ) -> LoopHooks:
        """The hooks of one kind of loop."""

    def runs(self, loop: Any, kind: str | None = None) -> None:
        """A loop is about to run on this thread. One of a `kind` has timers as asyncio has them
        (`call_later`, `is_closed`), and a ticker times it. If it has `runners`, these are the frames that run
        it, or a loop inside: (id, instruction; -1: any) each. None: one of asyncio's or uvloop's. Raises
        nothing."""

    def stopped(self, loop: Any) -> None:
        """It runs no more. Its thread. Raises nothing."""


class Windows(Protocol):
    """What probes of toolkits with windows are to do. Any thread, under the GIL; nothing is raised."""

    def scene_of(self, title: str, otherwise: str) -> str:
        """What a window with this title is called as a scene; `otherwise`, its class, where titles are not
        told or it has none. The answer stays alive."""


@runtime_checkable
class Windowed(Protocol):
    """A probe of a toolkit with windows."""

    def use_windows(self, windows: Windows) -> None:
        """Called once, before `install`."""


@runtime_checkable
class Traced(Protocol):
    """A probe that reports frames, input or idle work."""

    def use_tracers(self, tracers: Tracers) -> None:
        """Called once, before `install`."""
