"""What can be wrong with a bundle."""

from __future__ import annotations


class BundleError(Exception):
    """The file is no bundle that can be taken, or cannot become one. One line: what is wrong, and where."""
