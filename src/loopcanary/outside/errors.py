"""Errors of reading another process; each is one sentence for people."""

from __future__ import annotations


class OutsideError(Exception):
    """The process is not there, is not one that can be read, or ended meanwhile."""


class NotReadableError(OutsideError):
    """The kernel does not let this user read the process."""


class NotReachableError(OutsideError):
    """The process cannot be asked for this: its Python is too old, or its settings refuse."""


class HangsError(OutsideError):
    """The process did not get to what it was asked in time."""
