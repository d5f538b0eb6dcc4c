"""What can be wrong with an export."""

from __future__ import annotations


class ExportError(Exception):
    """Says what is missing or wrong, and what to do."""
