"""Frames of threads and tasks, as the extension gives them."""

from __future__ import annotations

from typing import Any

from loopcanary.model.stack import Frame


def frame_of(read: tuple[Any, ...]) -> Frame:
    """A frame as native/module/other_process.c gives it."""
    qualname, file, line, end_line, column, end_column, first_line, flags = read
    return Frame(
        qualname=qualname,
        file=file,
        line=line,
        end_line=end_line,
        column=column,
        end_column=end_column,
        first_line=first_line,
        code_flags=flags,
    )
