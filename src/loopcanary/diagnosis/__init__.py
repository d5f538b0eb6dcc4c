"""The diagnosis: from the evidence of a stall to a verdict.

Pure: no clock is read, nothing is written. The one thing looked at besides the arguments is source text,
through a SourceReader. docs/internals/diagnosis.md explains every word and formula.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from loopcanary.diagnosis.code.code_paths import CodePaths
    from loopcanary.diagnosis.code.sources import FileSources, SourceLines, SourceReader
    from loopcanary.diagnosis.filters import drop_reason
    from loopcanary.diagnosis.fingerprint import explain
    from loopcanary.diagnosis.health.loop import loop_health
    from loopcanary.diagnosis.health.pools import process_health
    from loopcanary.diagnosis.judgement import diagnose, not_intercepted

_HOMES = {
    "code.code_paths": "CodePaths",
    "code.sources": "FileSources SourceLines SourceReader",
    "filters": "drop_reason",
    "fingerprint": "explain",
    "health.loop": "loop_health",
    "health.pools": "process_health",
    "judgement": "diagnose not_intercepted",
}
__all__ = [name for names in ("prepare", *_HOMES.values()) for name in names.split()]


def __getattr__(name: str) -> Any:
    """Loads each module with its first use: a watched process asks for the health of its loops alone."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def prepare() -> None:
    """Loads what the first verdict would load else, with the registered rules and remedies."""
    from importlib import import_module

    from loopcanary.diagnosis.advice import registered
    from loopcanary.diagnosis.causes import rules

    for home in _HOMES:
        import_module(f"{__name__}.{home}")
    rules()
    registered()
