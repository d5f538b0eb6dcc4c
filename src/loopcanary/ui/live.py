"""Looks at the stores now and then, and says when something changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind, Session, Stall
from loopcanary.model.search import OTHERS, STALLS, IssueQuery
from loopcanary.model.units import format_size
from loopcanary.protocols.stores import IssueStore
from loopcanary.report.times import moment
from loopcanary.ui.cached import cached
from loopcanary.ui.sources import Failures, OneStore, as_one, change_each

LOOK_EVERY_S = 1.0
_NOTICES_MAX = 20
_ASIDE_TOLD_NS = 86_400 * 1_000_000_000
"""How long every page shows a damaged database that was set aside; later only the doctor's does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What runs now beside one store."""

    running: tuple[Session, ...] = ()
    ongoing: tuple[Stall, ...] = ()
    notices: tuple[str, ...] = ()
    """Lines for people about what happened; they stay."""
    trouble: tuple[str, ...] = ()
    """Lines for people about what is wrong at this moment."""


_PAGES = {
    "frames": (IssueKind.JANK, IssueKind.INPUT, IssueKind.IDLE),
    "startup": (IssueKind.STARTUP,),
    "methods": (IssueKind.SLOW_METHOD,),
}
"""Pages that most programs fill nothing of, and the kinds that do."""

_MET_TOLD_S = 60.0
"""How long a failure is shown that pages met, and the look once a second does not."""

Look = Callable[[OneStore], Sight]
"""Takes in what dead processes left, and lays what runs now over the store. Raises only `errors`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What was found at the last look."""

    stored: tuple[int, ...] = ()
    """Changes with each issue, of any kind, that is stored or removed."""
    running: int = 0
    ongoing: tuple[str, ...] = ()
    """Ids of stalls that go on."""
    moving: int = 0
    """Changes while programs run."""
    trouble: tuple[str, ...] = ()
    """What is wrong with a store, for people."""
    filled: frozenset[str] = frozenset()
    """Those of the pages for other kinds that an issue fills."""
    bugs: int = 0
    issues: int = 0
    """Bugs of other kinds than stalls."""
    runs: int = 0

    @property
    def version(self) -> str:
        """Another one each time that issues came, went or ended, or that something went wrong."""
        return f"{hash((self.stored, self.ongoing, self.running, self.trouble)) & 0xFFFFFFFF:x}"


class Watch:
    """The stores, looked at again at most every second, on request. Thread-safe."""

    def __init__(self, stores: Sequence[OneStore], look: Look, errors: tuple[type[Exception], ...]) -> None:
        self.stores = tuple(stores)
        self._cached = tuple(cached(store.reader) for store in self.stores)
        self.source: IssueStore = as_one(self._cached, Failures(errors=errors, tell=self._heard))
        self._look = look
        self._errors = errors
        self._lock = threading.Lock()
        self._looked_s = float("-inf")
        self._notices: dict[str, None] = {}
        self._met: dict[str, float] = {}
        """What a store has raised while pages were made that show the others, and when."""
        self._now = Now()

    def now(self) -> Now:
        """What is so now, or was a second ago."""
        with self._lock:
            if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
                self._now = self._looked()
                self._looked_s = time.monotonic()
            return self._now

    def change(self, change: Callable[[OneStore], object]) -> None:
        """Changes the stores; the next question looks anew. Raises what one of them does."""
        change_each(self.stores, change, self._errors)
        self.again()

    def again(self) -> None:
        """The next question looks anew: something was changed by us."""
        with self._lock:
            self._looked_s = float("-inf")

    def after(self, now: Now) -> Now:
        """What is so when a page was made: as before, unless making it has shown that a store is damaged."""
        with self._lock:
            is_known = all(line in now.trouble for line in self._met)
        if is_known and not any(store.notices for store in self.stores):
            return now
        self.again()
        return self.now()

    def _heard(self, index: int, error: Exception) -> None:
        line = _of(self.stores[index], str(error))
        with self._lock:
            if line not in self._now.trouble:  # what the look meets, too, is gone when the look says so
                self._met[line] = time.monotonic()

    def _looked(self) -> Now:
        sights: list[Sight] = []
        trouble: list[str] = []
        stored: list[int] = []
        filled: set[str] = set()
        found: dict[str, set[str]] = {"bugs": set(), "issues": set(), "runs": set()}
        for store, known in zip(self.stores, self._cached, strict=True):
            try:
                sight = self._look(store)
                sums = [
                    known.totals(IssueQuery()),
                    # With those within their limit, which the others leave out.
                    known.totals(IssueQuery(kind=IssueKind.STARTUP)),
                ]
                filled.update(_filled(known))
                found["bugs"].update(one.fingerprint for one in known.group_sums(STALLS))
                found["issues"].update(one.fingerprint for one in known.group_sums(OTHERS))
                found["runs"].update(run.id for run in known.session_marks(IssueQuery()))
            except self._errors as error:
                trouble.append(_of(store, str(error)))
                self._note([_of(store, line) for line in store.notices])
                store.notices.clear()
                continue
            sights.append(sight)
            trouble += [_of(store, line) for line in sight.trouble]
            self._note([_of(store, line) for line in sight.notices])
            stored += [figure for one in sums for figure in (one.issues, one.total_ns)]
        for store in self.stores:
            trouble += self._aside(store)
        since_s = time.monotonic() - _MET_TOLD_S
        self._met = {line: met_s for line, met_s in self._met.items() if met_s >= since_s}
        trouble += [line for line in self._met if line not in trouble]
        running = [session for sight in sights for session in sight.running]
        return Now(
            stored=tuple(stored),
            running=len(running),
            ongoing=tuple(stall.id for sight in sights for stall in sight.ongoing),
            moving=self._now.moving + bool(running),
            trouble=(*self._notices, *trouble),
            filled=frozenset(filled),
            **{name: len(ids) for name, ids in found.items()},
        )

    def _aside(self, store: OneStore) -> list[str]:
        """Lines of what others have set aside: the program, a report, the pages before they were ended."""
        since = time.time_ns() - _ASIDE_TOLD_NS
        return [
            f"{store.folder}: a damaged database was set aside {moment(one.wall_ns)} and a new one begun; "
            f"its {format_size(one.bytes)} are not in these pages: `sqlite3 {one.name} .recover` may still "
            "read it, else delete it"
            for one in store.maintenance.set_aside()
            if one.wall_ns >= since and not any(one.name in line for line in self._notices)
        ]

    def _note(self, notices: Sequence[str]) -> None:
        """Keeps the last ones, each once: a page is served for weeks."""
        for notice in notices:
            self._notices.pop(notice, None)
            self._notices[notice] = None
        for old in list(self._notices)[:-_NOTICES_MAX]:
            del self._notices[old]


def _filled(store: IssueStore) -> Iterator[str]:
    if store.totals(OTHERS).issues:
        yield "issues"
    for page, kinds in _PAGES.items():
        if any(store.totals(IssueQuery(kind=kind)).issues for kind in kinds):
            yield page


def _of(store: OneStore, line: str) -> str:
    """The line, which says of which store it is."""
    folder = str(store.folder)
    return line if folder in line else f"{folder}: {line}"
