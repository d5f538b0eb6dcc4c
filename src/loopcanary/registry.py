"""One door for all that is plugged in: what loopcanary brings itself, and what others bring.

A registration is a group, a name, and an object or where that is: `module:object`, loaded when it is needed.
Built-in ones are the table of `built_in`. A third party's are entry points of the same groups; the program's
own come by `REGISTRY.add`. What the object of a group is: docs/plugins.md.

Read at the start of every watched interpreter: it loads next to nothing.
"""

from __future__ import annotations

import os
import sys

from loopcanary.built_in import (
    BUILT_IN,
    CAUSES,
    EXPORTERS,
    GROUPS,
    IMPORTERS,
    INTEGRATIONS,
    INTERCEPTORS,
    KINDS,
    LOOPS,
    REMEDIES,
    REPORTERS,
    TRACERS,
    Kind,
    Library,
    LoopKind,
)

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from loopcanary.model import ShownFrame
    from loopcanary.model.figures.tracers import TracerState
    from loopcanary.protocols.plugins import Interceptor

__all__ = [
    "CAUSES",
    "EXPORTERS",
    "GROUPS",
    "IMPORTERS",
    "INTEGRATIONS",
    "INTERCEPTORS",
    "KINDS",
    "LOOPS",
    "REGISTRY",
    "REMEDIES",
    "REPORTERS",
    "TRACERS",
    "FrameListener",
    "Kind",
    "Library",
    "LoopKind",
    "Registration",
    "Registry",
    "awaited",
    "called",
    "issue_kind",
    "load",
    "said_of",
]
_METADATA = "-info"
"""What the names of the folders end with that packages leave beside them: PyPA's entry points specification,
and the older `.egg-info` and `EGG-INFO`."""


_PREFIX = b"[loopcanary."
"""What the names of all our groups begin with, as a file of entry points has them."""
_ENTRY_POINTS_BYTES_MAX = 1 << 20


class Registration:
    """One object of a group."""

    __slots__ = ("group", "is_built_in", "name", "origin", "target")

    def __init__(
        self, group: str, name: str, target: object, *, origin: str = "", is_built_in: bool = False
    ) -> None:
        """`target`: the object, or `module:object`. `origin`: the package that brings it, with its version;
        empty: loopcanary or the program itself."""
        self.group = group
        self.name = name
        self.target = target
        self.origin = origin
        self.is_built_in = is_built_in

    def load(self) -> Any:
        """The object. Raises what the import of its module raises; TypeError: the group wants another."""
        found = load(self.target) if isinstance(self.target, str) else self.target
        wanted = _TYPES.get(self.group)
        if wanted is not None and not isinstance(found, wanted):
            raise TypeError(f"{self.target!r} is no {wanted.__name__}")
        return found


def load(target: str) -> Any:
    """The object at `module:object`. Raises what the import raises; AttributeError: no such object."""
    from importlib import import_module

    module, _, path = target.partition("[")[0].strip().partition(":")
    found: Any = import_module(module.strip())
    for name in path.strip().split(".") if path.strip() else ():
        found = getattr(found, name)
    return found


_TYPES: dict[str, type] = {LOOPS: LoopKind, INTEGRATIONS: Library, KINDS: Kind, REMEDIES: tuple}
"""What the engine reads by itself, without a net."""


class FrameListener:
    """A function that is called with each frame that is shown (model.ShownFrame)."""

    __slots__ = ("hear", "on_thread")

    def __init__(self, hear: Callable[[ShownFrame], object], on_thread: bool = False) -> None:
        """`on_thread`: called on a thread of ours, a little later, not on the one that draws."""
        self.hear = hear
        self.on_thread = on_thread

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrameListener) and (self.hear, self.on_thread) == (
            other.hear,
            other.on_thread,
        )

    __hash__ = None  # type: ignore[assignment]


class Registry:
    """What is registered in this process. Under the GIL."""

    def __init__(self) -> None:
        self.interceptors: list[Interceptor] = []
        """Live: one that is added counts at once."""
        self.frame_listeners: list[FrameListener] = []
        """Live."""
        self.tracer_listeners: list[Callable[[str, TracerState], object]] = []
        """Live."""
        self.failed: Callable[[str, Exception], object] = _ignore
        """What a running engine, and nothing else, wants to know: a part and its error."""
        self._own: dict[tuple[str, str], Registration] = {}
        self._installed: tuple[tuple[object, ...], list[Registration]] | None = None

    def add(self, group: str, name: str, target: object) -> None:
        """Registers something, in place of another of that name. In force from the next start of the engine.

        Args:
            group: Such as `loopcanary.reporters` (docs/plugins.md).
            name: Its name in the group.
            target: The object, or `module:object`, which is loaded when it is wanted.
        """
        self._own[group, name] = Registration(group, name, target)

    def of(self, group: str) -> list[Registration]:
        """All of a group by name: built-in ones in their order, third parties', the program's own."""
        rows = BUILT_IN.get(group, {})
        found = {name: Registration(group, name, target, is_built_in=True) for name, target in rows.items()}
        for one in self.installed():
            if one.group == group:
                found.setdefault(one.name, one)
        found |= {one.name: one for one in self._own.values() if one.group == group}
        return list(found.values())

    def loaded(self, group: str) -> list[tuple[Registration, Any]]:
        """All of a group with their objects; `failed` is called for those that cannot be loaded."""
        return [pair for one in self.of(group) for pair in self._loaded(one)]

    def plugged(self, group: str) -> list[tuple[Registration, Any]]:
        """As `loaded`, without the names that are built in."""
        names = BUILT_IN.get(group, {})
        return [pair for one in self.of(group) if one.name not in names for pair in self._loaded(one)]

    def _loaded(self, one: Registration) -> Iterator[tuple[Registration, Any]]:
        try:
            yield one, one.load()
        except Exception as error:
            if one.is_built_in:
                raise
            self.failed(f"plugin {one.name}", error)

    def find(self, group: str, name: str) -> Registration | None:
        return next((one for one in self.of(group) if one.name == name), None)

    def installed(self) -> list[Registration]:
        """Third parties', of all groups; none where LOOPCANARY_PLUGINS=0. Looked up anew only where the
        path has changed."""
        path: tuple[object, ...] = tuple(sys.path)
        if self._installed is None or self._installed[0] != path:
            self._installed = path, list(_installed(path))
        return self._installed[1]

    def add_interceptor(self, interceptor: Interceptor) -> None:
        """Registers once; the same object again is no error."""
        if interceptor not in self.interceptors:
            self.interceptors.append(interceptor)

    def add_tracer_listener(self, listener: Callable[[str, TracerState], object]) -> None:
        """Registers once; the same function again is no error."""
        if listener not in self.tracer_listeners:
            self.tracer_listeners.append(listener)

    def add_frame_listener(self, listener: FrameListener) -> None:
        """Registers once; the same function again is no error."""
        if listener not in self.frame_listeners:
            self.frame_listeners.append(listener)


def _ignore(part: str, error: Exception) -> None:
    del part, error


REGISTRY = Registry()


def issue_kind(name: str) -> Kind:
    """What is registered about the kind of this name; of an unknown one no more than its name. Raises what
    loading a third party's raises."""
    found = REGISTRY.find(KINDS, name)
    kind: Kind = Kind(None, words=name.replace("-", " ")) if found is None else found.load()
    return kind


def said_of(issue: Any, what: str, *more: Any) -> Any:
    """What a function of an issue's kind, such as its `figures`, gives for it; None: the kind has none."""
    function = called(getattr(issue_kind(issue.kind.value), what))
    return None if function is None else function(issue, *more)


def called(target: Any) -> Any:
    """A function that a registration names or is; None: there is none."""
    return load(target) if isinstance(target, str) else target


def awaited() -> tuple[str, ...]:
    """Without an import of one of these modules there is nothing to watch that loopcanary itself knows."""
    loops: Iterable[LoopKind] = BUILT_IN[LOOPS].values()
    libraries: Iterable[Library] = BUILT_IN[INTEGRATIONS].values()
    return (
        *(module for kind in loops for module in kind.awaits),
        *(library.awaits for library in libraries if library.brings_work),
    )


def _installed(path: Sequence[object]) -> Iterator[Registration]:
    if os.environ.get("LOOPCANARY_PLUGINS") == "0" or not _may_be_there(path):
        return
    from importlib.metadata import entry_points

    for group in GROUPS:
        for point in entry_points(group=group):
            origin = "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
            yield Registration(group, point.name, point.value, origin=origin)


def _may_be_there(path: Sequence[object]) -> bool:
    """Whether an installed package may have an entry point for us. importlib.metadata knows for sure, but
    brings forty modules and two megabytes into the program, and most have no such package."""
    own = sys.modules["_frozen_importlib_external"].PathFinder
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not own):
        return True
    return any(_has_ours(folder or os.curdir) for folder in path if isinstance(folder, str))


def _has_ours(folder: str) -> bool:
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        return True  # an archive: not read here
    except (OSError, ValueError):
        return False
    return any(
        _speaks_of_us(f"{folder}/{name}/entry_points.txt")
        for name in names
        if name.lower().endswith(_METADATA)
    )


def _speaks_of_us(file: str) -> bool:
    try:
        # Some hundred files a start: io's own take three times as long.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return False
    try:
        content = os.read(descriptor, _ENTRY_POINTS_BYTES_MAX)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return _PREFIX in content
