"""Looks at the stores once a second, and tells pages that listen what changed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

import anyio
from anyio import to_thread

from loopcanary.document.times import moment
from loopcanary.late_dataclass import dataclass
from loopcanary.model import IssueKind, Session, Stall
from loopcanary.model.search import OTHERS, STALLS, IssueQuery
from loopcanary.model.units import format_size
from loopcanary.protocols.stores import IssueStore
from loopcanary.ui.cached import cached
from loopcanary.ui.sources import Failures, OneStore, as_one, change_each

LOOK_EVERY_S = 1.0
_NOTICES_MAX = 20
_ASIDE_TOLD_NS = 86_400 * 1_000_000_000
"""The time for which every page shows a damaged database that was set aside; then the doctor's page does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The programs that run beside one store, and its state."""

    running: tuple[Session, ...] = ()
    ongoing: tuple[Stall, ...] = ()
    notices: tuple[str, ...] = ()
    """Lines about what happened; they stay."""
    trouble: tuple[str, ...] = ()
    """Lines about what is wrong at this moment."""


_PAGES = {
    "frames": (IssueKind.JANK, IssueKind.INPUT, IssueKind.IDLE),
    "startup": (IssueKind.STARTUP,),
    "methods": (IssueKind.SLOW_METHOD,),
}
"""The pages that stay empty for most programs, with the kinds that fill them."""

_MET_TOLD_S = 60.0
"""The time for which a failure is shown that a page met and the look does not."""

Look = Callable[[OneStore], Sight]
"""Takes in what dead processes left, and lays running programs over the store. Raises only `errors`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The last look's findings."""

    stored: tuple[int, ...] = ()
    """Changes with each issue, of any kind, that is stored or removed."""
    running: int = 0
    ongoing: tuple[str, ...] = ()
    moving: int = 0
    """Changes while programs run."""
    trouble: tuple[str, ...] = ()
    filled: frozenset[str] = frozenset()
    """The pages for other kinds that have an issue."""
    bugs: int = 0
    issues: int = 0
    """The bugs of other kinds than stalls."""
    runs: int = 0

    @property
    def version(self) -> str:
        """Differs when issues came, went or ended, or something went wrong."""
        return f"{hash((self.stored, self.ongoing, self.running, self.trouble)) & 0xFFFFFFFF:x}"


class Watch:
    """The stores, looked at again at most every second, on request. Thread-safe."""

    def __init__(
        self,
        stores: Sequence[OneStore],
        look: Look,
        errors: tuple[type[Exception], ...],
        own: Callable[[], object] = lambda: None,
    ) -> None:
        self.stores = tuple(stores)
        self._cached = tuple(cached(store.reader) for store in self.stores)
        self.source: IssueStore = as_one(self._cached, Failures(errors=errors, tell=self._heard))
        self._look = look
        self._own = own
        self._errors = errors
        self._lock = threading.Lock()
        self._looked_s = float("-inf")
        self._notices: dict[str, None] = {}
        self._met: dict[str, float] = {}
        """Errors of a store while a page showed the others, with their times."""
        self._now = Now()

    def now(self) -> Now:
        """The state now, or up to a second ago."""
        with self._lock:
            if time.monotonic() - self._looked_s >= LOOK_EVERY_S:
                self._now = self._looked()
                self._looked_s = time.monotonic()
            return self._now

    def change(self, change: Callable[[OneStore], object]) -> None:
        """Changes the stores. Raises what one of them does."""
        self._own()
        change_each(self.stores, change, self._errors)
        self.again()

    def again(self) -> None:
        """Makes the next question look anew."""
        with self._lock:
            self._looked_s = float("-inf")

    def after(self, now: Now) -> Now:
        """The state after a page was made, which may have shown that a store is damaged."""
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
        """Lines about databases that the program, a report or earlier pages have set aside."""
        since = time.time_ns() - _ASIDE_TOLD_NS
        return [
            f"{store.folder}: a damaged database was set aside {moment(one.wall_ns)} and a new one begun; "
            f"its {format_size(one.bytes)} are not in these pages: `sqlite3 {one.name} .recover` may still "
            "read it, else delete it"
            for one in store.maintenance.set_aside()
            if one.wall_ns >= since and not any(one.name in line for line in self._notices)
        ]

    def _note(self, notices: Sequence[str]) -> None:
        """Keeps the latest notices, each once: pages are served for weeks."""
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
    """The line with its store's folder."""
    folder = str(store.folder)
    return line if folder in line else f"{folder}: {line}"


_SILENT_MAX = 15
"""Seconds without news after which a comment is sent, to notice a connection that is gone."""


async def events(
    look: Callable[[], Now],
    is_over: Callable[[], bool],
    is_gone: Callable[[], Awaitable[bool]],
    *,
    every_s: float = LOOK_EVERY_S,
) -> AsyncIterator[str]:
    """Server-sent events: one at once, then one for each change, until the server or the listener ends."""
    last: str | None = None
    silent = 0
    while not is_over() and not await is_gone():
        now = await to_thread.run_sync(look)
        data = json.dumps(
            {
                "version": now.version,
                "moving": now.moving,
                "running": now.running,
                "ongoing": len(now.ongoing),
            }
        )
        silent += 1
        if data != last:
            yield f"data: {data}\n\n"
            last, silent = data, 0
        elif silent >= _SILENT_MAX:
            yield ": still here\n\n"
            silent = 0
        await anyio.sleep(every_s)
