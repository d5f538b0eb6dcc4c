"""Errors of reading another process; each is one sentence for people."""

from __future__ import annotations


class OutsideError(Exception):
    """The process is not there, is not one that can be read, or ended meanwhile."""


class NotReadableError(OutsideError):
    """The kernel does not let this user read the process."""
