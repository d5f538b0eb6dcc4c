"""One table of what can be plugged in. Built-in parts stand here like a third party's.

A third party registers by entry point: group `loopcanary.reporters` or `loopcanary.tracers`, the object a
callable without arguments that makes the reporter or tracer; or `loopcanary.interceptors`, the object the
interceptor itself. A part that cannot be loaded is left out, with its reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from typing import Any

from loopcanary.protocols import Interceptor, Reporter, Tracer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from loopcanary.model import ShownFrame

TRACERS = "loopcanary.tracers"
REPORTERS = "loopcanary.reporters"
INTERCEPTORS = "loopcanary.interceptors"
GROUPS = (REPORTERS, INTERCEPTORS, TRACERS)
_METADATA = "-info"
"""What the names of the folders end with that packages leave beside them: PyPA's entry points specification,
and the older `.egg-info` and `EGG-INFO`."""


@dataclass(frozen=True, slots=True)
class FrameListener:
    """Somebody who wants to hear of each frame (model.ShownFrame)."""

    hear: Callable[[ShownFrame], object]
    on_thread: bool = False
    """Called on a thread of ours, a little later, not on the one that draws."""


@dataclass(slots=True)
class Registry:
    """What is registered in this process."""

    interceptors: list[Interceptor] = field(default_factory=list)
    reporters: dict[str, Callable[[], Reporter]] = field(default_factory=dict)
    tracers: dict[str, Callable[[], Tracer]] = field(default_factory=dict)
    frame_listeners: list[FrameListener] = field(default_factory=list)

    def add_interceptor(self, interceptor: Interceptor) -> None:
        """Registers once; the same object again is no error."""
        if interceptor not in self.interceptors:
            self.interceptors.append(interceptor)

    def add_frame_listener(self, listener: FrameListener) -> None:
        """Registers once; the same function again is no error."""
        if listener not in self.frame_listeners:
            self.frame_listeners.append(listener)

    def add_reporter(self, name: str, make: Callable[[], Reporter]) -> None:
        """Registers a reporter by name; a later one of the same name replaces it."""
        self.reporters[name] = make

    def add_tracer(self, name: str, make: Callable[[], Tracer]) -> None:
        """Registers a tracer by name; a later one of the same name replaces it. In force from the next start
        of the engine."""
        self.tracers[name] = make


REGISTRY = Registry()


def entry_points(failed: Callable[[str, Exception], None]) -> Iterator[tuple[str, str, Any]]:
    """(group, name, object) of every third party's entry point; `failed` hears of what cannot be loaded.

    Read once, when the engine starts, and not at all where LOOPCANARY_PLUGINS=0.
    """
    if os.environ.get("LOOPCANARY_PLUGINS") == "0" or not _may_be_there(sys.path):
        return
    from importlib.metadata import entry_points as installed

    for group in GROUPS:
        for point in installed(group=group):
            try:
                yield group, point.name, point.load()
            except Exception as error:  # noqa: BLE001 - a third party's package
                failed(f"plugin {point.name}", error)


def _may_be_there(path: Sequence[object]) -> bool:
    """Whether an installed package may have an entry point for us. importlib.metadata knows for sure, but
    brings forty modules and two megabytes into the program, and most have no such package."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    return any(_has_ours(folder or os.curdir) for folder in path if isinstance(folder, str))


def _has_ours(folder: str) -> bool:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - pathlib would add nothing
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
        with open(file, "rb") as text:  # noqa: PTH123 - as above
            content = text.read()
    except OSError:
        return False
    return any(group.encode() in content for group in GROUPS)
