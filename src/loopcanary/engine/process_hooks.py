"""Forks and the end of the process, reported to the canary in force.

Registered once in a process: a fork hook can never be taken back.
"""

from __future__ import annotations

import atexit
import os
from typing import Protocol


class ForkListener(Protocol):
    """What is called. No method raises."""

    def before_fork(self) -> None:
        """On the forking thread; nothing of the program runs in between."""

    def after_fork_in_parent(self) -> None:
        """On the forking thread, also where there is no child."""

    def after_fork_in_child(self) -> None:
        """On the only thread there is."""

    def stop(self) -> None:
        """The process ends."""


class _Hooks:
    follower: ForkListener | None = None
    are_registered = False


def follow(follower: ForkListener) -> None:
    """From now on `follower` is called, and no earlier one."""
    _Hooks.follower = follower
    if _Hooks.are_registered:
        return
    _Hooks.are_registered = True
    atexit.register(_at_exit)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.before_fork()


def _in_parent() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.after_fork_in_parent()


def _in_child() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.after_fork_in_child()


def _at_exit() -> None:
    if _Hooks.follower is not None:
        _Hooks.follower.stop()
