"""The formats that are registered (`loopcanary.exporters`): built-in ones and third parties'."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from loopcanary.exporters.errors import ExportError
from loopcanary.exporters.source import Exported
from loopcanary.late_dataclass import dataclass
from loopcanary.registry import EXPORTERS, REGISTRY, Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format and who writes it."""

    name: str
    write: Callable[[Exported, IO[bytes]], None]
    """Called with what is exported, whose stalls come once and in order, and an open binary file, which stays
    open. Raises OSError."""
    binary: bool = False
    """Nothing for a terminal."""
    takes_issues: bool = False
    """Writes issues of every kind, not stalls alone."""


def names() -> list[str]:
    """Of all formats; none is loaded."""
    return [one.name for one in REGISTRY.of(EXPORTERS)]


def find(name: str) -> Format | None:
    """The format of that name; None: there is none. ExportError where it cannot be loaded, or a library that
    it needs is not installed."""
    one = REGISTRY.find(EXPORTERS, name)
    return None if one is None else _loaded(one)


def _loaded(one: Registration) -> Format:
    try:
        found = one.load()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0].replace("google", "protobuf")
        if not one.is_built_in or missing in ("", "loopcanary"):
            raise ExportError(_cannot_be_loaded(one, error)) from error
        raise ExportError(
            f"--format {one.name} needs {missing}, which is not installed: "
            'pip install "loopcanary[export]" brings it'
        ) from error
    except Exception as error:
        raise ExportError(_cannot_be_loaded(one, error)) from error
    if not isinstance(found, Format):
        raise ExportError(f"the exporter {one.name} of {one.target} is no loopcanary.exporters.Format")
    return found


def _cannot_be_loaded(one: Registration, error: Exception) -> str:
    return f"the exporter {one.name} of {one.target} cannot be loaded: {error}"
