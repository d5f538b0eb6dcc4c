"""Calling back when a module has been imported, so that a probe needs not import it first."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded for it: this runs at the start of every watched interpreter
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _AfterExec:
    """The module's own loader, and a call after it has run the module."""

    def __init__(self, loader: Loader, after: Callable[[], object]) -> None:
        self._loader = loader
        self._after = after

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._after()


class ImportWatch:
    """Calls `after` once, when the first of the modules `names` has been imported; at once if one is there.

    Runs on the importing thread. While it waits it stands first on sys.meta_path and delegates to the
    finders behind it; it leaves the path when it has fired or is cancelled.
    """

    def __init__(self, names: str | Sequence[str], after: Callable[[], object]) -> None:
        self._names = frozenset((names,) if isinstance(names, str) else names)
        self._after = after
        self._searching = False

    def start(self) -> None:
        """Waits for a module, or calls back now."""
        if not self._names.isdisjoint(sys.modules):
            self._after()
        else:
            sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Stops waiting. Idempotent."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the finders behind this one give, with the call back added to its loader."""
        if fullname not in self._names or self._searching:
            return None
        self._searching = True
        try:
            spec = self._behind(fullname, path, target)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _AfterExec(spec.loader, self._fire)  # type: ignore[assignment]
        return spec

    def _behind(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def _fire(self) -> None:
        self.cancel()
        self._after()
