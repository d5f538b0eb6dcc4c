"""The importer of bundles, as it is registered (`loopcanary.importers`)."""

from __future__ import annotations

import zipfile
from pathlib import Path

from loopcanary.bundles import layout
from loopcanary.bundles.archive import BROKEN
from loopcanary.bundles.reading import Taker, read_bundle

_END_MAX = 65_557
"""Bytes of the end of a zip with the longest comment."""


class BundleImporter:
    """See protocols.Importer."""

    words = "bundles of loopcanary"

    def recognises(self, path: Path) -> bool:
        """Whether it is a zip file that has a manifest, or cannot be read."""
        if not zipfile.is_zipfile(path):
            return False
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                directory = min(size, layout.DIRECTORY_MAX + _END_MAX)
                file.seek(size - directory)
                return layout.MANIFEST.encode() in file.read(directory)
        except BROKEN:
            return True

    def read(self, path: Path, taker: Taker, *, now_wall_ns: int) -> None:
        read_bundle(path, taker, now_wall_ns=now_wall_ns)


BUNDLE = BundleImporter()
