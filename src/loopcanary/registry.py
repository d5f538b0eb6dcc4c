"""One door for all that is plugged in: what loopcanary brings itself, and what others bring.

A registration is a group, a name, and an object or where that is: `module:object`, loaded when it is needed.
Built-in ones are the table of `built_in`. A third party's are entry points of the same groups; the program's
own come by `REGISTRY.add`. What the object of a group is: docs/how-to/plugins.md.

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
    IN_PROGRAMS,
    IN_TOOLS,
    INTEGRATIONS,
    INTERCEPTORS,
    KINDS,
    LOOPS,
    REMEDIES,
    REPORTERS,
    TRACERS,
    Library,
    LoopKind,
)
from loopcanary.whose_exception import ours, ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from loopcanary.model import ShownFrame
    from loopcanary.model.tracer_states import TracerState
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
    "Library",
    "LoopKind",
    "Registration",
    "Registry",
    "awaited",
    "load",
]
_METADATA = "-info"
"""What the names of the folders end with that packages leave beside them: PyPA's entry points specification,
and the older `.egg-info` and `EGG-INFO`."""

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
            raise TypeError(f"{self.target!r} is not a {wanted.__name__}")
        return found


def load(target: str) -> Any:
    """The object at `module:object`. Raises what the import raises; AttributeError: no such object."""
    from importlib import import_module

    module, _, path = target.partition("[")[0].strip().partition(":")
    found: Any = import_module(module.strip())
    for name in path.strip().split(".") if path.strip() else ():
        found = getattr(found, name)
    return found


_TYPES: dict[str, type] = {LOOPS: LoopKind, INTEGRATIONS: Library, KINDS: type, REMEDIES: tuple}
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
    """The parts that are registered in this process. Methods are called with the GIL."""

    def __init__(self) -> None:
        self.interceptors: list[Interceptor] = []
        """Live: one that is added counts at once."""
        self.frame_listeners: list[FrameListener] = []
        """Live."""
        self.tracer_listeners: list[Callable[[str, TracerState], object]] = []
        """Live."""
        self.failed: Callable[[str, Exception], object] = _ignore
        """Called with a part and its error. A running engine sets it; without one, nothing happens."""
        self.imports: Callable[[str, Callable[[], Any]], Any] = lambda _, load: load()
        """Calls what imports a third party's module, for a part: a running engine bounds it in time."""
        self._hanging: set[str] = set()
        """Modules whose import did not come back: it is not waited for again, nor in a forked child."""
        self._own: dict[tuple[str, str], Registration] = {}
        self._installed: dict[tuple[str, ...], tuple[tuple[object, ...], list[Registration]]] = {}
        """The path, and what was found there, of groups that are looked for together."""

    def add(self, group: str, name: str, target: object) -> None:
        """Registers something, in place of another of that name. In force from the next start of the engine.

        Args:
            group: Such as `loopcanary_tools.reporters` (docs/how-to/plugins.md).
            name: Its name in the group.
            target: The object, or `module:object`, which is loaded when it is wanted.
        """
        self._own[group, name] = Registration(group, name, target)

    def of(self, group: str) -> list[Registration]:
        """All of a group by name: built-in ones in their order, third parties', the program's own."""
        rows = BUILT_IN.get(group, {})
        found = {name: Registration(group, name, target, is_built_in=True) for name, target in rows.items()}
        for one in self.installed(group):
            found.setdefault(one.name, one)
        found |= {one.name: one for one in self.own(group)}
        return list(found.values())

    def own(self, group: str) -> list[Registration]:
        """The program's own of a group."""
        return [one for one in self._own.values() if one.group == group]

    def loaded(self, group: str) -> list[tuple[Registration, Any]]:
        """All of a group with their objects; `failed` is called for those that cannot be loaded."""
        return [pair for one in self.of(group) for pair in self._loaded(one)]

    def plugged(self, group: str) -> list[tuple[Registration, Any]]:
        """As `loaded`, without the names that are built in."""
        names = BUILT_IN.get(group, {})
        return [pair for one in self.of(group) if one.name not in names for pair in self._loaded(one)]

    def _loaded(self, one: Registration) -> Iterator[tuple[Registration, Any]]:
        part, module = f"plugin {one.name}", str(one.target).partition(":")[0]
        is_at_once = one.is_built_in or not isinstance(one.target, str)
        if module in self._hanging:
            return
        try:
            yield one, one.load() if is_at_once else self.imports(part, one.load)
        except ours() as error:
            if one.is_built_in:
                raise
            if isinstance(error, TimeoutError):
                self._hanging.add(module)
            self.failed(part, error)

    def find(self, group: str, name: str) -> Registration | None:
        return next((one for one in self.of(group) if one.name == name), None)

    def installed(self, group: str) -> list[Registration]:
        """Third parties' of a group; none where LOOPCANARY_PLUGINS=0. Looked up anew only where the path has
        changed."""
        path: tuple[object, ...] = tuple(sys.path)
        groups = IN_PROGRAMS if group in IN_PROGRAMS else IN_TOOLS
        if groups not in self._installed or self._installed[groups][0] != path:
            self._installed[groups] = path, list(_installed(path, groups))
        return [one for one in self._installed[groups][1] if one.group == group]

    def add_interceptor(self, interceptor: Interceptor) -> None:
        """Registers once; the same object again is not an error."""
        if interceptor not in self.interceptors:
            self.interceptors.append(interceptor)

    def add_tracer_listener(self, listener: Callable[[str, TracerState], object]) -> None:
        """Registers once; the same function again is not an error."""
        if listener not in self.tracer_listeners:
            self.tracer_listeners.append(listener)

    def add_frame_listener(self, listener: FrameListener) -> None:
        """Registers once; the same function again is not an error."""
        if listener not in self.frame_listeners:
            self.frame_listeners.append(listener)


def _ignore(part: str, error: Exception) -> None:
    del part, error


REGISTRY = Registry()


def awaited() -> tuple[str, ...]:
    """Without an import of one of these modules there is nothing to watch that loopcanary itself knows."""
    loops: Iterable[LoopKind] = BUILT_IN[LOOPS].values()
    libraries: Iterable[Library] = BUILT_IN[INTEGRATIONS].values()
    return (
        *(module for kind in loops for module in kind.awaits),
        *(library.awaits for library in libraries if library.brings_work),
    )


def _installed(path: Sequence[object], groups: Sequence[str]) -> Iterator[Registration]:
    # As a file of entry points has the beginning of their names.
    prefix = f"[{groups[0].partition('.')[0]}.".encode()
    if os.environ.get("LOOPCANARY_PLUGINS") == "0" or not _may_be_there(path, prefix):
        return
    from importlib.metadata import entry_points

    for group in groups:
        for point in entry_points(group=group):
            origin = "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
            yield Registration(group, point.name, point.value, origin=origin)


def _may_be_there(path: Sequence[object], prefix: bytes) -> bool:
    """Whether an installed package may have an entry point for us. importlib.metadata knows for sure, but
    brings forty modules and two megabytes into the program, and most have no such package."""
    # Also of the finder of engine.import_path.
    own = sys.modules["_frozen_importlib_external"].PathFinder.find_distributions
    if any(getattr(finder, "find_distributions", own) is not own for finder in sys.meta_path):
        return True
    return any(_has_ours(folder or os.curdir, prefix) for folder in path if isinstance(folder, str))


def _has_ours(folder: str, prefix: bytes) -> bool:
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        return True  # an archive: not read here
    except ours_of(OSError, ValueError):
        return False
    return any(
        _speaks_of_us(f"{folder}/{name}/entry_points.txt", prefix)
        for name in names
        if name.lower().endswith(_METADATA)
    )


def _speaks_of_us(file: str, prefix: bytes) -> bool:
    try:
        # Some hundred files a start: io's own take three times as long.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except ours_of(OSError):
        return False
    try:
        content = os.read(descriptor, _ENTRY_POINTS_BYTES_MAX)
    except ours_of(OSError):
        return False
    finally:
        os.close(descriptor)
    return prefix in content
