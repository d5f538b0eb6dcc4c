"""The diagnosis: from the evidence of a stall to a verdict.

Pure: no clock is read, nothing is written. The one thing looked at besides the arguments is source text,
through a SourceReader. docs/internals/diagnosis.md explains every word and formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from loopcanary.diagnosis.code.ownership import CodePaths
    from loopcanary.diagnosis.hangs import find_hang
    from loopcanary.diagnosis.health import loop_health, process_health
    from loopcanary.diagnosis.judgement import diagnose, drop_reason, is_meant, not_intercepted, prepare

_HOMES = {
    "code.ownership": "CodePaths",
    "hangs": "find_hang",
    "health": "loop_health process_health",
    "judgement": "diagnose drop_reason is_meant not_intercepted prepare",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    """Loads each module with its first use: a watched process asks for the health of its loops alone."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
