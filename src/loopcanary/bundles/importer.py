"""The importer of bundles, as it is registered (`loopcanary.importers`)."""

from __future__ import annotations

import zipfile
from pathlib import Path

from loopcanary.bundles.reading import Taker, read_bundle


class BundleImporter:
    """See protocols.Importer."""

    def recognises(self, path: Path) -> bool:
        """Whether it is a zip file."""
        return zipfile.is_zipfile(path)

    def read(self, path: Path, taker: Taker, *, now_wall_ns: int) -> None:
        read_bundle(path, taker, now_wall_ns=now_wall_ns)


BUNDLE = BundleImporter()
