"""Calling back when a module has been imported, so that a probe needs not import it first."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded for it: this runs at the start of every watched interpreter
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType


_run_to_its_end: set[str] = set()
"""Modules that are whole at this moment, though their spec does not say so yet."""


def is_half_imported(name: str) -> bool:
    """Whether the module's code still runs: it may, deep inside, have imported what was awaited."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name not in _run_to_its_end and bool(getattr(spec, "_initializing", False))


_Spec = type(sys.__spec__)
"""importlib.machinery.ModuleSpec, which is not imported for it."""


class _TellingSpec(_Spec):  # type: ignore[misc, valid-type]
    """Tells when the import machinery calls the module's import over. The machinery has no hook for that: it
    sets this attribute, whether the module's code came to its end or failed."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            self.__class__ = _Spec  # type: ignore[assignment]
            for tell in self.__dict__.pop("_loopcanary_tells", ()):
                tell()


def tell_when_whole(module: ModuleType, tell: Callable[[], object]) -> None:
    """Calls when the import of the module, which is under way, is over; never where that cannot be learnt."""
    spec = module.__spec__
    if type(spec) is _Spec:
        spec.__class__ = _TellingSpec
    if isinstance(spec, _TellingSpec):
        spec.__dict__.setdefault("_loopcanary_tells", []).append(tell)


class _AfterExec:
    """The module's own loader, and a call after it has run the module."""

    def __init__(self, loader: Loader, after: Callable[[], object]) -> None:
        self._loader = loader
        self._after = after

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _run_to_its_end.add(module.__name__)
        try:
            self._after()
        finally:
            _run_to_its_end.discard(module.__name__)


class LoopcanaryFinder:
    """Is first on sys.meta_path while any ImportWatch waits, and delegates to the finders behind it."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[ImportWatch]] = {}
        self._searching: set[str] = set()

    def add(self, watch: ImportWatch) -> None:
        """Waits for the modules of the watch."""
        for name in watch.names:
            self._waiting.setdefault(name, []).append(watch)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self, watch: ImportWatch) -> None:
        """Idempotent."""
        for name in watch.names:
            left = [other for other in self._waiting.pop(name, ()) if other is not watch]
            if left:
                self._waiting[name] = left
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)

    def has(self, watch: ImportWatch) -> bool:
        """Whether it waits for the modules of the watch."""
        return any(watch in waiting for waiting in self._waiting.values())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the finders behind this one give, with the call back added to its loader."""
        if fullname not in self._waiting or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = self._behind(fullname, path, target)
        finally:
            self._searching.discard(fullname)
        # Loaders of before 3.4 have load_module alone: what they load is not waited for.
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _AfterExec(spec.loader, lambda: self._fire(fullname))  # type: ignore[assignment]
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

    def _fire(self, fullname: str) -> None:
        for watch in list(self._waiting.get(fullname, ())):
            watch.fire()


_FINDER = LoopcanaryFinder()


class ImportWatch:
    """Calls `after` once, when the first of the modules `names` has been imported; at once if one is there.

    Runs on the importing thread. `after` must not raise.
    """

    def __init__(self, names: str | Sequence[str], after: Callable[[], object]) -> None:
        self.names = frozenset((names,) if isinstance(names, str) else names)
        self._after = after
        self._half: set[str] = set()

    def start(self) -> None:
        """Waits for a module, or calls back now."""
        there = self.names.intersection(sys.modules)
        self._half = {name for name in there if is_half_imported(name)}
        if there - self._half:
            self._after()
        else:
            _FINDER.add(self)
            for name in self._half:
                tell_when_whole(sys.modules[name], self._is_whole)

    @property
    def is_waiting(self) -> bool:
        """Whether it has been started, and has neither fired nor been cancelled."""
        return _FINDER.has(self)

    def cancel(self) -> None:
        """Stops waiting. Idempotent."""
        _FINDER.remove(self)

    def fire(self) -> None:
        """Stops waiting and calls back."""
        self.cancel()
        self._after()

    def _is_whole(self) -> None:
        """One that was half imported is whole by now; or its import has failed, and left nothing."""
        if self.is_waiting and not self._half.isdisjoint(sys.modules):
            self.fire()
