"""The keeper put together: flight files, recovery and store behind what its loop asks."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from loopcanary import diagnosis, flight
from loopcanary import keeper as place
from loopcanary.assembly.keeper.deaths import Death
from loopcanary.assembly.keeper.plugins import Plugins, bound_imports
from loopcanary.assembly.keeper.program import FlightLife
from loopcanary.assembly.keeper.stations import KeptStations
from loopcanary.assembly.store import ignored_bugs, recover, retention_of
from loopcanary.engine.flight_place import place_in_memory
from loopcanary.engine.threads import PythonThread
from loopcanary.keeper.kept_store import DeathNote, KeptStore, StoreFailure, WatchedLife
from loopcanary.keeper.loop import Keeper
from loopcanary.keeper.seat import APART, Seat, Signals
from loopcanary.model import Config, Session, SessionEnd, Stall
from loopcanary.notifications.notifier import Notifier
from loopcanary.protocols.plugins import Interceptor
from loopcanary.registry import INTERCEPTORS, REGISTRY
from loopcanary.store import FLIGHT_FOLDER, Recovery, Retention, Store, StoreError
from loopcanary.store.recovery.flight_folder import FLIGHT, SAVED, Entry, FlightFolder
from loopcanary.words.text import count_of, printable

_LINGER_NS = 10_000_000_000
_MEMORY_BYTES = 256 << 20
"""Ten times what one takes that serves a hundred programs."""
_DANGLES_S = 1.0
_CLOSE_S = 0.5
"""At the end, for notifications that are to be delivered still."""
_OPEN_NS = 1_000_000_000
"""To open a database takes as long as to judge a stall; they come in swarms."""


def make_keeper(
    stores: Sequence[Store],
    *,
    is_apart: bool,
    show: Callable[[str], object],
    complain: Callable[[str], object],
    notify: Config | None = None,
) -> Keeper:
    """A keeper of these stores, not yet begun. Main thread.

    `is_apart`: a program has started it; it ends some seconds after the last watched process. `show`: gets a
    line for people, `complain` one of what is wrong; neither raises. `notify`: the settings by which it
    notifies; None: those of the first program that asks for it.
    """
    _allow_descriptors()
    if is_apart:
        _bound_memory()
    bound_imports(complain)
    diagnosis.prepare()  # now: what a killed program leaves shall not wait for it
    about = {
        "pid": os.getpid(),
        "since_wall_ns": time.time_ns(),
        "version": place.VERSION,
        "prefix": sys.prefix,
        APART: is_apart,
    }
    kept = []
    for store in stores:
        files = StoreFiles(store, show, complain, is_apart=is_apart, notify=notify)
        kept.append(KeptStore(Seat(str(store.folder)), files, complain, about))
    return Keeper(kept, Signals(), show, complain, linger_ns=_LINGER_NS if is_apart else None)


def _allow_descriptors() -> None:
    """Two for each watched process."""
    import resource

    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _bound_memory() -> None:
    """It counts as its programs' in their container. What is beyond raises MemoryError where it is asked for,
    and costs that file a try. Not RLIMIT_AS: each thread reserves addresses that it never uses."""
    import resource

    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        bound = _MEMORY_BYTES if most == resource.RLIM_INFINITY else min(_MEMORY_BYTES, most)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, most))


class StoreFiles:
    """See keeper.kept_store.Files."""

    def __init__(
        self,
        store: Store,
        show: Callable[[str], object],
        complain: Callable[[str], object],
        *,
        is_apart: bool = False,
        notify: Config | None = None,
    ) -> None:
        """As make_keeper."""
        self._store = store
        self._show = show
        self._is_apart = is_apart
        self._has_dangling = False
        self._complain = complain
        self._counts: Counter[str] = Counter()
        self._stores: dict[Retention, Store] = {}
        self._changes_before = 0
        self._close_ns: int | None = None
        """When to close the stores, unless something comes meanwhile."""
        thread = partial(PythonThread, name="loopcanary-notify")
        self._notifier = Notifier(store.folder, partial(ignored_bugs, store), thread)
        self._notify = notify
        self._plugins = Plugins(complain)
        self._interceptors: list[Interceptor] | None = None
        """Those of packages; None: not loaded yet."""

    def begin(self) -> None:
        if self._notify is not None:
            self._notifier.ask(self._notify, self._complain)

    @property
    def folder(self) -> Path:
        return Path(place.below(str(self._store.folder), FLIGHT_FOLDER))

    def names(self) -> Collection[str]:
        try:
            with self._folder() as folder:
                names = folder.names()
                return [name for name in names if not _is_copy_of_a_file_that_is_there(folder, name)]
        except OSError:
            return []

    def link(self, name: str) -> bool:
        if not name.endswith(FLIGHT) or "/" in name:
            return False
        with self._folder() as folder:
            return folder.link(name)

    def open(self, name: str) -> WatchedLife | None:
        if not name.endswith(FLIGHT):
            return None
        try:
            with self._folder() as folder:
                entry = folder.find(name)
            if entry is None or not entry.is_ours:
                return None
            if entry.file is None:
                self._note_dangling(entry)
                return None
            file = flight.FlightFile.open(entry.path)
        except (flight.FlightError, OSError):
            return None  # in the making, or to be set aside
        if file.identity == entry.identity:
            return FlightLife(file, self._stations, lambda: self._remove(entry))
        file.close()
        return None

    def _note_dangling(self, entry: Entry) -> None:
        """Its file may be in the memory of another container. After a reboot, it is gone; and a program that
        ends takes it away before its link."""
        now_s = time.time()
        booted_s = now_s - time.clock_gettime(time.CLOCK_BOOTTIME)
        if self._is_apart or self._has_dangling or not booted_s < entry.changed_s < now_s - _DANGLES_S:
            return
        self._has_dangling = True
        self._complain(
            f"{entry.path} is missing here: does the program run in another container? Mount one "
            "memory-backed volume in"
            f" both, and set {place.FLIGHT_DIR} to it in both"
        )

    def recover(self, name: str, death: DeathNote | None) -> None:
        def intercepted(stall: Stall) -> Stall | None:
            if isinstance(death, Death) and stall.state.is_of_process:
                stall = replace(stall, killed_by=death.in_stall(stall))
            return self._intercepted(stall)

        try:
            ended_ns = None if death is None else death.ended_ns
            found = recover(
                self._store,
                living=False,
                names=(name,),
                intercept=intercepted,
                ended_ns=ended_ns,
                sources=death.sources if isinstance(death, Death) else None,
            )
            self._notify_of(found)
        except StoreError as error:
            raise StoreFailure(str(error)) from error
        finally:
            for line in self._store.notices:
                self._complain(line)
            self._store.notices.clear()
            self._store.close()  # idle, it shall hold nothing
        for line in found.notices:
            self._complain(line)
        for session in found.sessions:
            self._counts["processes"] += 1
            self._show(_death(session, [stall for stall in found.stalls if stall.session == session.id]))
        self._counts["stalls"] += len(found.stalls)

    def _notify_of(self, found: Recovery) -> None:
        try:
            self._notifier.hear_all([*found.stalls, *found.issues], found.sessions)
        except Exception as error:  # noqa: BLE001 - a third party's kind; what is stored is stored
            self._complain(f"notifications: {type(error).__name__}: {error}")

    def hand_on(self, now_ns: int) -> int | None:
        changes = self._counts["changes"]
        if changes != self._changes_before:
            self._changes_before, self._close_ns = changes, now_ns + _OPEN_NS
        elif self._close_ns is None or now_ns >= self._close_ns:
            self._close_stores()
        due_ns = self._notifier.look(now_ns)
        return min((one for one in (due_ns, self._close_ns) if one is not None), default=None)

    def end(self) -> None:
        self._notifier.end(_CLOSE_S)
        self._close_stores()

    def _store_for(self, config: Config) -> Store:
        """Programs with the same retention share one."""
        retention = retention_of(config)
        if retention not in self._stores:
            self._stores[retention] = Store(self._store.folder, retention=retention, notify=self._complain)
        return self._stores[retention]

    def _close_stores(self) -> None:
        """Idle, it shall hold nothing."""
        self._close_ns = None
        for store in (self._store, *self._stores.values()):
            store.close()

    def status(self) -> dict[str, object]:
        return {"processes": self._counts["processes"], "stalls": self._counts["stalls"]}

    def _of_packages(self) -> Sequence[Interceptor]:
        if self._interceptors is None:
            found = [one for _, one in REGISTRY.loaded(INTERCEPTORS)]
            self._interceptors = [self._plugins.interceptor(one) for one in found]
        return self._interceptors

    def _intercepted(self, stall: Stall) -> Stall | None:
        """Passes a dead program's stall through the interceptors. An interceptor that fails is switched off,
        and the stall goes on without it."""
        for interceptor in list(self._of_packages()):
            try:
                seen = interceptor(stall)
                if seen is None:
                    return None
                stall = seen if isinstance(seen, Stall) else stall
            except Exception as error:  # noqa: BLE001 - a third party's
                self._interceptors = [one for one in self._of_packages() if one is not interceptor]
                name = getattr(interceptor, "__qualname__", "")
                why = f"{type(error).__name__}: {error}"
                self._complain(f"interceptor {name} failed and is switched off: {why}")
        return stall

    def _stations(
        self, file: flight.FlightFile, facts: dict[str, Any], header: flight.FlightHeader, pid: int | None
    ) -> KeptStations:
        return KeptStations(
            file,
            facts,
            header,
            pid,
            store_for=self._store_for,
            interceptors=self._of_packages(),
            plugins=self._plugins,
            complain=self._complain,
            counts=self._counts,
            notifier=self._notifier,
        )

    def _remove(self, entry: Entry) -> None:
        """The process has ended, and all is stored."""
        self._counts["processes"] += 1
        with suppress(OSError), self._folder() as folder:
            entry.forget()
            folder.remove(entry.name, entry.name.removesuffix(FLIGHT) + SAVED)

    def _folder(self) -> FlightFolder:
        return FlightFolder(self.folder, place_in_memory)


def _is_copy_of_a_file_that_is_there(folder: FlightFolder, name: str) -> bool:
    """The file in memory has more; both are handled together."""
    if not name.endswith(SAVED):
        return False
    entry = folder.find(name.removesuffix(SAVED) + FLIGHT)
    return entry is not None and entry.file is not None


def _death(session: Session, stalls: Sequence[Stall]) -> str:
    """For people: who ended, and what was recovered."""
    how = {SessionEnd.KILLED: "was killed", SessionEnd.CRASHED: "crashed"}.get(session.end, "ended")
    who = f"{printable(session.name, 100)} (pid {session.pid})"
    longest = max(stalls, key=lambda stall: stall.duration_ns, default=None)
    if longest is None:
        return f"{who} {how}"
    return f"{who} {how}: {count_of(len(stalls), 'stall')}, {printable(longest.title, 200)}"
