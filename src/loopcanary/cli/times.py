"""Times as people give them: `2h` ago, a date, a moment."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import click

from loopcanary.model.units import parse_duration_ns, parse_size_bytes


class Moment(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A time in nanoseconds since 1970: `90m` (ago), `2026-11-21`, `2026-11-21 05:00`, RFC 3339."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Nanoseconds since 1970; a time without an offset is local."""
        if isinstance(value, int):
            return value
        try:
            return time.time_ns() - parse_duration_ns(value)
        except ValueError:
            pass
        try:
            return round(datetime.fromisoformat(value).astimezone().timestamp()) * 1_000_000_000
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is no time: write 2h (ago), 2026-11-21 or 2026-11-21T05:00", param, ctx)


class Duration(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A duration in nanoseconds: `30d`, `12h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration_ns(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Size(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """A number of bytes: `8MB`, `1GiB`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_size_bytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
