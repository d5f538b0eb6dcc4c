"""`loopcanary run` without click: a line that is well-formed, and where nothing is to be said.

Help, errors, notices and completion are the command's (commands/run.py). Where one of these is due, nothing
has happened yet, and the command begins anew.
"""

from __future__ import annotations

import os
import sys

from loopcanary.cli.options import RUN_ONLY, SETTINGS, given
from loopcanary.cli.program import UnfitProgramError, prepared, split
from loopcanary.cli.program import start as start_program

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from loopcanary.model import Config

_OPTIONS = {option.name: option for option in (*SETTINGS, *RUN_ONLY)}
_WITH_VALUE = frozenset(option.name for option in _OPTIONS.values() if not option.is_flag)
_COMPLETION = "_LOOPCANARY_COMPLETE"
"""Set by shells that ask click what could follow."""


def start(line: Sequence[str]) -> None:
    """Turns this process into the program of a line, what follows `loopcanary run`. Returns where that is
    the command's."""
    if sys.platform == "win32" or os.environ.get(_COMPLETION):
        return
    ours, program = split(line, _WITH_VALUE)
    settings = _read(ours)
    if settings is None:
        return
    try:
        words, environment, notice = prepared(program, given(settings), _load)
    except (UnfitProgramError, ValueError):  # ConfigError is one
        return
    if notice is None:
        start_program(words, environment)


def _load(settings: dict[str, Any]) -> Config:
    from loopcanary.config import load

    return load(**settings)


def _read(words: Sequence[str]) -> dict[str, Any] | None:
    """The options by their keys, as the command gets them from click; None where one is bad."""
    values: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        name, equals, attached = word.partition("=")
        option = _OPTIONS.get(name)
        if option is None or (option.is_flag and equals):
            return None
        value = attached if equals or option.is_flag else next(rest, None)
        if value is None:
            return None
        values.setdefault(name, []).append(value)
    settings: dict[str, Any] = {}
    for name, found in values.items():
        option = _OPTIONS[name]
        counting = found if option.repeats else found[-1:]
        if not option.is_flag and not all(map(option.takes, counting)):
            return None
        settings[option.key] = True if option.is_flag else tuple(counting) if option.repeats else counting[0]
    return settings
