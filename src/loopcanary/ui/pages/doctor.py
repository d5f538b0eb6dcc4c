"""The page of the doctor: the parts that work here or do not, and the stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model.search import STALLS
from loopcanary.ui.sources import AsideLike, OneStore
from loopcanary.ui.tools import Row, Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRow:
    folder: str
    stalls: int | None
    groups: int | None
    wrong: str
    """Why it cannot be read; empty: it can."""
    aside: tuple[AsideLike, ...] = ()
    """Its damaged databases that were set aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPage:
    rows: Iterable[Row]
    """Each row is made when the page is sent up to it."""
    stores: tuple[StoreRow, ...]


def doctor_page(stores: Sequence[OneStore], tools: Tools, errors: tuple[type[Exception], ...]) -> DoctorPage:
    """Asks the stores now, and every part when its row is read."""
    return DoctorPage(
        rows=tools.doctor(),
        stores=tuple(_store(store, errors) for store in stores),
    )


def _store(store: OneStore, errors: tuple[type[Exception], ...]) -> StoreRow:
    folder = str(store.folder)
    try:
        sums = store.reader.totals(STALLS)
    except errors as error:
        aside = tuple(store.maintenance.set_aside())
        return StoreRow(folder=folder, stalls=None, groups=None, wrong=str(error), aside=aside)
    aside = tuple(store.maintenance.set_aside())  # asking may have set one aside
    return StoreRow(folder=folder, stalls=sums.issues, groups=sums.groups, wrong="", aside=aside)
