"""Bundles: chosen stalls with the facts of their sessions in one zip file, for another store.

    layout     names, version and limits of the format (docs/bundles.md)
    writing    from records to a file, streamed
    reading    from an untrusted file to records
    archive    the zip itself, refused where it is no plain one
    redaction  what is replaced by what

Streams; holds a few records at a time.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from loopcanary.bundles.classes import ALL, CLASSES
    from loopcanary.bundles.errors import BundleError
    from loopcanary.bundles.pseudonyms import load_key
    from loopcanary.bundles.reading import Manifest, Taker, read_bundle
    from loopcanary.bundles.redaction import Redactor
    from loopcanary.bundles.writing import Contents, Written, write_bundle

_HOMES = {
    "classes": "ALL CLASSES",
    "errors": "BundleError",
    "pseudonyms": "load_key",
    "reading": "Manifest Taker read_bundle",
    "redaction": "Redactor",
    "writing": "Contents Written write_bundle",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    """Loads each module with its first use: the command line's help names classes, and no more."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
