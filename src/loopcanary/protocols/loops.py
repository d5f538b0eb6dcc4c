"""Probes, which report to the engine what one kind of loop does, and the objects that probes get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.protocols.tracing import Tracers


class Probe(Protocol):
    """Reports to the engine what one kind of loop does."""

    kind: str

    def install(self) -> None:
        """Patches the library, if it is there, or when it is imported. Idempotent; raises nothing into the
        program."""

    def uninstall(self) -> None:
        """Removes the probe's patches, except those that another tool has patched over. Idempotent."""


class LoopHooks(Protocol):
    """How a probe reports a loop that has hooks: the native engine's LoopHooks, or the portable one's
    (native/probes/hooks/loop_hooks.h). On the loop's thread; further arguments are ignored."""

    def run_begin(self, *ignored: object) -> bool:
        """The loop begins to run on this thread, with its first turn. True: it runs in a turn of another
        loop."""

    def run_end(self, *ignored: object) -> None:
        """The loop has stopped."""

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
        """Returns a replacement for the function. A call of it is the loop's wait. Like the other
        replacements here, it binds as functions do."""

    def around_works(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Returns a replacement for the function. Callbacks that begin in a call of it end with the call."""

    def around_work(
        self, function: Callable[..., Any], attribute: str, name_of: Callable[[type, type], str], /
    ) -> Callable[..., Any]:
        """The function's call is a callback, which two types name: that of its second argument, and that
        of an attribute of it.

        Args:
            function: What is called for each callback.
            attribute: Of the second argument; where it has none, the type is NoneType.
            name_of: Called once for each pair of types; gives the callback's name.

        Returns:
            What takes the function's place.
        """


class PortableSide(Protocol):
    """The object that probes get from the portable engine, in place of the native engine's extension."""

    def LoopHooks(  # noqa: N802 - as the extension has it
        self, kind: str, loop_seen: Callable[[], object] | None = None, /
    ) -> LoopHooks:
        """The hooks of one kind of loop."""

    def runs(self, loop: Any, kind: str | None = None) -> None:
        """A loop is about to run on this thread. Raises nothing.

        Args:
            loop: The loop. One with a `kind` has timers as asyncio has them (`call_later`, `is_closed`), and
                a ticker times it. Its `runners`, if it has any, are the frames that run it, or a loop inside:
                (id, instruction; -1: any) each.
            kind: None: one of asyncio's or uvloop's.
        """

    def stopped(self, loop: Any) -> None:
        """The loop has stopped. Called on the loop's thread. Raises nothing."""


class Windows(Protocol):
    """Helps probes of toolkits that have windows. Any thread, under the GIL; nothing is raised."""

    def scene_of(self, title: str, otherwise: str) -> str:
        """Names a window as a scene.

        Args:
            title: Of the window.
            otherwise: Its class: the name where titles are not to be recorded, or it has none.

        Returns:
            The scene. It stays alive.
        """


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
