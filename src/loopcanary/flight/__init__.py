"""Reads flight files: of this process, of another that runs, of one that is dead. Trusts no byte.

See docs/internals/flight-format.md for the format, and `FlightFile` for the way in.
"""

from __future__ import annotations

from loopcanary.flight.alive import Liveness, hold_lock, holds_lock, liveness, maps, stores_to
from loopcanary.flight.hang import HangFile
from loopcanary.flight.header import FlightHeader, TickClock
from loopcanary.flight.reader import FlightFile, open_own
from loopcanary.flight.source import FlightError

__all__ = [
    "FlightError",
    "FlightFile",
    "FlightHeader",
    "HangFile",
    "Liveness",
    "TickClock",
    "hold_lock",
    "holds_lock",
    "liveness",
    "maps",
    "open_own",
    "stores_to",
]
