"""Reads flight files: of this process, of another that runs, of one that is dead. Trusts no byte.

See docs/internals/flight-format.md for the format, and `FlightFile` for the way in.
"""

from __future__ import annotations

from loopcanary.flight.errors import FlightError
from loopcanary.flight.header import FlightHeader, TickClock
from loopcanary.flight.liveness import Liveness, hold_lock, holds_lock, liveness, maps
from loopcanary.flight.reader import FlightFile, open_own

__all__ = [
    "FlightError",
    "FlightFile",
    "FlightHeader",
    "Liveness",
    "TickClock",
    "hold_lock",
    "holds_lock",
    "liveness",
    "maps",
    "open_own",
]
