"""Other people's formats: stalls as traces, profiles and tables that other tools open.

One file a format. Each writes stalls as they come from the store and keeps none, so that 100,000 of them need
no more memory than their different functions and threads do. docs/export.md shows each, and which tool opens
it.
"""

from __future__ import annotations

from loopcanary.exporters.errors import ExportError
from loopcanary.exporters.formats import Format, find, names
from loopcanary.exporters.source import Exported, Program

__all__ = ["ExportError", "Exported", "Format", "Program", "find", "names"]
