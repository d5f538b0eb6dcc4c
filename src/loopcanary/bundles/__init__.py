"""Bundles: chosen stalls with the facts of their sessions in one zip file, for another store.

    layout     names, version and limits of the format (docs/bundles.md)
    writing    from records to a file, streamed
    reading    from a file that nobody vouches for to records
    archive    the zip itself, refused where it is no plain one
    redaction  what is replaced by what

Streams; holds a few records at a time.
"""

from __future__ import annotations

from loopcanary.bundles.errors import BundleError
from loopcanary.bundles.pseudonyms import load_key
from loopcanary.bundles.reading import Manifest, Taker, read_bundle
from loopcanary.bundles.redaction import ALL, CLASSES, Redactor
from loopcanary.bundles.writing import Contents, Written, write_bundle

__all__ = [
    "ALL",
    "CLASSES",
    "BundleError",
    "Contents",
    "Manifest",
    "Redactor",
    "Taker",
    "Written",
    "load_key",
    "read_bundle",
    "write_bundle",
]
