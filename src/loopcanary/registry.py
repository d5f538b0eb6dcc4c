"""One table of what can be plugged in. Built-in parts stand here like a third party's.

A third party registers by entry point: group `loopcanary.reporters` or `loopcanary.interceptors`, the
object a callable without arguments that makes the reporter, or the interceptor itself. A part that
cannot be loaded is left out, with its reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from loopcanary.protocols import Interceptor, Reporter

GROUPS = ("loopcanary.reporters", "loopcanary.interceptors")


@dataclass(slots=True)
class Registry:
    """What is registered in this process."""

    interceptors: list[Interceptor] = field(default_factory=list)
    reporters: dict[str, Callable[[], Reporter]] = field(default_factory=dict)

    def add_interceptor(self, interceptor: Interceptor) -> None:
        """Registers once; the same object again is no error."""
        if interceptor not in self.interceptors:
            self.interceptors.append(interceptor)

    def add_reporter(self, name: str, make: Callable[[], Reporter]) -> None:
        """Registers a reporter by name; a later one of the same name replaces it."""
        self.reporters[name] = make


REGISTRY = Registry()


def entry_points(failed: Callable[[str, Exception], None]) -> Iterator[tuple[str, str, Any]]:
    """(group, name, object) of every third party's entry point; `failed` hears of what cannot be loaded.

    Reading the metadata of all installed packages takes tens of milliseconds, so it is done once, when
    the engine starts, and not at all where LOOPCANARY_PLUGINS=0.
    """
    if os.environ.get("LOOPCANARY_PLUGINS") == "0":
        return
    from importlib.metadata import entry_points as installed

    for group in GROUPS:
        for point in installed(group=group):
            try:
                yield group, point.name, point.load()
            except Exception as error:  # noqa: BLE001 - a third party's package
                failed(f"plugin {point.name}", error)
