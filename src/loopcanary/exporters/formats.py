"""The table of formats. A third party's stands in the entry point group `loopcanary.exporters`: the name
of the format, and a Format."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import IO, TYPE_CHECKING

from loopcanary.exporters.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.exporters.source import Exported

GROUP = "loopcanary.exporters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format and who writes it."""

    name: str
    module: str
    """Has `write(exported, out)`, which writes bytes."""
    binary: bool = False
    """Nothing for a terminal."""
    opened_by: str = ""
    """For people."""

    def writer(self) -> Callable[[Exported, IO[bytes]], None]:
        """Loads it. ExportError where a library that it needs is not installed."""
        try:
            write: Callable[[Exported, IO[bytes]], None] = import_module(self.module).write
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0].replace("google", "protobuf")
            if missing in ("", "loopcanary"):
                raise
            raise ExportError(
                f"--format {self.name} needs {missing}, which is not installed: "
                'pip install "loopcanary[export]" brings it'
            ) from error
        return write


def _built_in(name: str, opened_by: str, *, binary: bool = False) -> Format:
    return Format(name=name, module=f"{__package__}.as_{name}", binary=binary, opened_by=opened_by)


FORMATS = {
    one.name: one
    for one in (
        _built_in("perfetto", "ui.perfetto.dev", binary=True),
        _built_in("chrome", "ui.perfetto.dev, chrome://tracing, Speedscope"),
        _built_in("firefox", "profiler.firefox.com"),
        _built_in("speedscope", "speedscope.app"),
        _built_in("pprof", "go tool pprof, Pyroscope, Polar Signals", binary=True),
        _built_in("collapsed", "flamegraph.pl, inferno, Speedscope"),
        _built_in("csv", "spreadsheets, pandas, DuckDB"),
        _built_in("jsonl", "jq, DuckDB, log shippers"),
    )
}


def find(name: str) -> Format | None:
    """The format of that name; None where nobody knows it. ExportError where a third party's cannot be
    loaded."""
    if name in FORMATS:
        return FORMATS[name]
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        try:
            found = point.load()
        except Exception as error:
            raise ExportError(f"the exporter {name} of {point.value} cannot be loaded: {error}") from error
        if not isinstance(found, Format):
            raise ExportError(f"the exporter {name} of {point.value} is no loopcanary.exporters.Format")
        return found
    return None
