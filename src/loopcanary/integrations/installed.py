"""All integrations of this process: patched when their library is imported, taken back together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from loopcanary.integrations.telling import Telling
from loopcanary.patches import Patches
from loopcanary.registry import INTEGRATIONS, REGISTRY, Library, load


class _Watch(Protocol):
    def start(self) -> None: ...

    def cancel(self) -> None: ...


class Integrations:
    """Implements protocols.Probe for every library that is registered."""

    kind = "integrations"

    def __init__(
        self,
        tell: Telling,
        watch_import: Callable[[str, Callable[[], object]], _Watch],
        contain: Callable[[str, Callable[[], Any]], object],
    ) -> None:
        """`watch_import(module, call)`: calls once when the module has been imported, or at once.
        `contain(name, function)` calls it, and nothing that it raises gets out: the program is in the middle
        of an import."""
        self._tell = tell
        self._contain = contain
        self._patches = Patches()
        self._watch_import = watch_import
        self._watches: list[_Watch] = []

    def install(self) -> None:
        """Idempotent."""
        if not self._watches:
            self._watches = [self._watch(library) for _, library in REGISTRY.loaded(INTEGRATIONS)]
            for watch in self._watches:
                watch.start()

    def uninstall(self) -> None:
        """Takes back what is still ours. Idempotent."""
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.cancel()
        self._patches.take_back()

    def _watch(self, library: Library) -> _Watch:
        return self._watch_import(library.awaits, lambda: self._lay(library))

    def _lay(self, library: Library) -> None:
        def patch() -> None:
            load(library.patch)(self._patches, self._tell)

        self._contain(library.name, patch)
