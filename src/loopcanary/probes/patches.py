"""Attributes of a library's classes and modules that are replaced, the way back, and a probe that does so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from loopcanary.probes.on_import import ImportWatch


class LaidPatches:
    """What was replaced, newest last."""

    def __init__(self) -> None:
        self._laid: list[tuple[Any, str, object, object]] = []

    def put(self, owner: Any, name: str, make: Callable[[Any], object]) -> None:
        """Puts `make(original)` in the original's place. Nothing, where the owner itself has none."""
        original = vars(owner).get(name)
        if original is not None:
            replacement = make(original)
            self._laid.append((owner, name, original, replacement))
            setattr(owner, name, replacement)

    def take_back(self) -> bool:
        """Puts every original back, except where another tool has patched over ours; whether there were any,
        and none of those."""
        is_whole = bool(self._laid)
        while self._laid:
            owner, name, original, replacement = self._laid.pop()
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
            else:
                is_whole = False
        return is_whole


def is_from(function: object, module: ModuleType) -> bool:
    """Whether the function is the module's own: its code is of the module's file."""
    return hasattr(function, "__code__") and getattr(function, "__globals__", None) is vars(module)


class PatchingProbe:
    """Implements protocols.loops.Probe for a library that is imported: a probe says what it patches, and what
    it takes back beside patches."""

    kind: str

    def __init__(
        self,
        engine: Any,
        loop_seen: Callable[[], None],
        contain: Callable[[Callable[[], None]], object],
    ) -> None:
        """As registry.LoopKind says; `engine`: the extension, or a protocols.loops.PortableSide."""
        self._engine = engine
        self._loop_seen = loop_seen
        self._contain = contain
        self._is_on = False
        self._patches = LaidPatches()
        self._watches: Sequence[ImportWatch] = ()
        """More of the library, which may be imported later."""
        self._notes: list[str] = []

    def install(self) -> None:
        """Patches the library; also where its loop runs already. Idempotent."""
        if not self._is_on:
            self._is_on = True
            self._notes.clear()
            self._contain(self._patch)
            for watch in self._watches:
                watch.start()

    def uninstall(self) -> None:
        """Takes back every patch that is still ours; what others have put over it stays. Idempotent."""
        if self._is_on:
            self._is_on = False
            for watch in self._watches:
                watch.cancel()
            self._take_back()

    def notes(self) -> Sequence[str]:
        """What of this library cannot be seen."""
        return tuple(self._notes)

    def _patch(self) -> None:
        """What is there from the beginning."""

    def _take_back(self) -> None:
        self._patches.take_back()
