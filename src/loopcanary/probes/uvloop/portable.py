"""The uvloop probe of the portable engine."""

from __future__ import annotations

from loopcanary.probes.asyncio.portable import PortableAsyncioProbe


class PortableUvloopProbe(PortableAsyncioProbe):
    """As asyncio's, of uvloop's own class."""

    kind = "uvloop"
    loops = ("uvloop", "Loop")

    def _see_running(self) -> None:
        """Asyncio's probe sees it."""
