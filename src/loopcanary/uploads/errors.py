"""What ends an upload."""

from __future__ import annotations


class UploadError(Exception):
    """It cannot go on. One line: what is wrong and what to do. What was acknowledged stays so."""
