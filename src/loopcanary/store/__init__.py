"""The store: SQLite in one folder, written by many watched processes at once, read by reports."""

from __future__ import annotations

from loopcanary.store.errors import StoreError
from loopcanary.store.forensics import Forensics
from loopcanary.store.location import Location, find, locate
from loopcanary.store.recovery import FLIGHT_FOLDER, Recovery, recover, settle
from loopcanary.store.retention import Retention
from loopcanary.store.store import Store, Totals

__all__ = [
    "FLIGHT_FOLDER",
    "Forensics",
    "Location",
    "Recovery",
    "Retention",
    "Store",
    "StoreError",
    "Totals",
    "find",
    "locate",
    "recover",
    "settle",
]
