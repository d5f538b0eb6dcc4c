"""The store: SQLite in one folder, written by many watched processes at once, read by reports."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from loopcanary.store.errors import StoreError
    from loopcanary.store.intake import Intake, TakenIn
    from loopcanary.store.location import Location, find, locate
    from loopcanary.store.recovery.flight_files import FLIGHT_FOLDER, Recovery, recover, settle
    from loopcanary.store.recovery.forensics import Forensics
    from loopcanary.store.retention import Retention
    from loopcanary.store.sqlite.files import may_be_store
    from loopcanary.store.store import Store

_HOMES = {
    "errors": "StoreError",
    "recovery.forensics": "Forensics",
    "intake": "Intake TakenIn",
    "location": "Location find locate",
    "recovery.flight_files": "FLIGHT_FOLDER Recovery recover settle",
    "retention": "Retention",
    "sqlite.files": "may_be_store",
    "store": "Store",
}
__all__ = [name for names in _HOMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    """Loads each module with its first use: a watched process that runs no loop needs few of them."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found
