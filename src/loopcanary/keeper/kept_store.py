"""One store under a keeper: which processes are watched, and what is due for each flight file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from loopcanary import keeper as place
from loopcanary.keeper.exits import wait_status
from loopcanary.keeper.seat import LEAVE, LEFT_WALL_NS, FollowedFolder, Seat
from loopcanary.late_dataclass import dataclass

_S = 1_000_000_000
_EVERY_NS = _S
"""How often to look where nothing signals that a process has ended or begun."""
_FIRST_TRY_NS, _LAST_TRY_NS = _S // 20, 60 * _S
_TRIES = 12
"""At a file that cannot be read: it may be in the making. The last one comes after three minutes."""
_STORE_TRY_NS = _S
_TOGETHER_NS = _S // 50
"""All living programs are looked at together for a ring; the names in it only bring back lost links."""


def _tries() -> Backoff:
    return Backoff(_FIRST_TRY_NS, _LAST_TRY_NS)


@dataclass(slots=True)
class _FileState:
    """A name in the flight folder."""

    life: WatchedLife | None = None
    """None: no living process is known to it."""
    descriptor: int | None = None
    """A pidfd, readable when the process has ended; None: only the lock on its file shows it."""
    death: DeathNote | None = None
    """What is known of the end of the process that there was."""
    due_ns: int | None = 0
    """When to deal with it at the latest; None: when something signals."""
    tries: Backoff = field(default_factory=_tries)

    def hear_end(self, now_ns: int) -> None:
        """The descriptor is readable."""
        life = self.life
        if self.descriptor is not None and life is not None and life.death is not None and life.pid:
            life.death.ended_ns = now_ns
            life.death.status = wait_status(self.descriptor, life.pid)
        self.hear_no_more()

    def hear_no_more(self) -> None:
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def let_go(self) -> None:
        life, self.life = self.life, None
        self.hear_no_more()
        if life is not None:
            life.close()


class KeptStore:
    """A store and the lives of its programs. One thread; time is an argument. A file that fails does not
    affect other files."""

    def __init__(
        self, seat: Seat, files: Files, complain: Callable[[str], object], about: Mapping[str, Any]
    ) -> None:
        """`complain`: gets a line of what is wrong; raises nothing. `about`: who keeps, for the status."""
        self.seat = seat
        self.is_asked_for = False
        """Another keeper wants the seat."""
        self._files = files
        self._about = about
        self._complain = complain
        self._complaints: set[str] = set()
        self._known: dict[str, _FileState] = {}
        self._folders: list[FollowedFolder] = []
        self._store_tries = Backoff(_STORE_TRY_NS, _LAST_TRY_NS)
        self._look_ns: int | None = 0
        """When to look at the folder at the latest."""
        self._hand_on_ns: int | None = None
        self._deaf_until_ns: int | None = None
        """Until then the bell is not listened to: many that ring are looked at together."""
        self._status: tuple[int, dict[str, Any]] = (0, {})
        """What was written last, and when."""
        self._status_ns: int | None = None
        """When it is to be written."""

    # ---- the seat ---------------------------------------------------------------------------

    def begin(self, now_ns: int) -> bool:
        """Takes the seat, and looks at all there is with the next turn; False: another keeper has it. OSError
        where there can be none."""
        if not self.seat.take():
            return False
        ours = Path(place.below(self.seat.store, place.FOLDER))
        self._folders = [self._followed_flight(), FollowedFolder(ours, removals_only=True)]
        self._look_ns = now_ns
        self.is_asked_for = False
        self._files.begin()
        return True

    def _followed_flight(self) -> FollowedFolder:
        self._files.folder.mkdir(place.FOLDER_MODE, exist_ok=True)
        return FollowedFolder(self._files.folder)

    def end(self) -> None:
        """Gives everything back. Processes that are still watched need another keeper."""
        if self.watched:
            self.seat.write_status({**self._status[1], LEFT_WALL_NS: time.time_ns()})
        for known in self._known.values():
            known.let_go()
        self._known.clear()
        try:
            self._files.end()
        except Exception as error:  # noqa: BLE001 - what is given back after this must be
            self._say(f"{type(error).__name__}: {error}")
        self.give_back()

    def give_back(self) -> None:
        """Gives the seat back, and goes on watching the processes that are watched."""
        folders, self._folders = self._folders, []
        for folder in folders:
            folder.close()
        self.seat.give_back(to_another=self.is_asked_for)

    # ---- what there is to wait for ----------------------------------------------------------

    @property
    def watched(self) -> int:
        return sum(known.life is not None for known in self._known.values())

    def watches(self, pid: int) -> bool:
        """Whether this process is watched, and lives."""
        return any(known.life is not None and known.life.pid == pid for known in self._known.values())

    @property
    def is_idle(self) -> bool:
        """Whether nothing is due for any process: no text waits, and no hang is to be reported again."""
        return self._hand_on_ns is None and all(known.due_ns is None for known in self._known.values())

    def descriptors(self) -> Iterator[int]:
        """Each is readable when there is something to do."""
        if self.seat.bell is not None and self._deaf_until_ns is None:
            yield self.seat.bell
        yield from (one.descriptor for one in self._known.values() if one.descriptor is not None)

    def due_ns(self) -> int | None:
        """When to take a turn at the latest; None: when something signals."""
        dues = [
            self._look_ns,
            self._hand_on_ns,
            self._status_ns,
            self._deaf_until_ns,
            *(known.due_ns for known in self._known.values()),
        ]
        return min((due for due in dues if due is not None), default=None)

    # ---- a turn -----------------------------------------------------------------------------

    def turn(self, now_ns: int, ready: Collection[int], *, changed: bool) -> None:
        """Does what is due. `ready`: descriptors that are readable; `changed`: a folder of some store has
        changed."""
        is_rung = self.seat.bell in ready
        if is_rung:
            rung = self.seat.hear()
            self.is_asked_for |= LEAVE in rung
            self._deaf_until_ns = now_ns + _TOGETHER_NS
            self._follow_anew(now_ns)
            for name in rung:
                with suppress(OSError, ValueError):  # it has ended; no name has a NUL
                    self._look_ns = now_ns if self._files.link(name) else self._look_ns
        elif _is_due(self._deaf_until_ns, now_ns):
            self._deaf_until_ns = None
        if changed or _is_due(self._look_ns, now_ns):
            self._follow(now_ns)
        for name, known in list(self._known.items()):
            has_ended = known.descriptor is not None and known.descriptor in ready
            if has_ended:
                known.hear_end(now_ns)
            if has_ended or _is_due(known.due_ns, now_ns) or (is_rung and known.life is not None):
                self._attend(name, known, now_ns, is_rung=is_rung)
        self._hand_on(now_ns)
        self._write_status(now_ns)

    def has_worked(self, until_ns: int, took_ns: int) -> None:
        """The turn took this long, until then. The bell is not listened to for as long: programs that stall
        without end have half of a core judged at most, and the slots of their files bound what waits."""
        if self._deaf_until_ns is not None:
            self._deaf_until_ns = max(self._deaf_until_ns, until_ns + took_ns)

    def _hand_on(self, now_ns: int) -> None:
        try:
            self._hand_on_ns = self._files.hand_on(now_ns)
        except Exception as error:  # noqa: BLE001 - programs are served even if this fails
            self._hand_on_ns = None
            self._say(f"{type(error).__name__}: {error}")

    def look_once(self, now_ns: int) -> None:
        """A turn without having been woken."""
        self._look_ns = now_ns
        self.turn(now_ns, (), changed=False)

    def _follow_anew(self, now_ns: int) -> None:
        """The flight folder may have been removed beside the programs that ring."""
        if self._folders and not self._folders[0].is_at(self._files.folder):
            with suppress(OSError):  # all of the store is gone: so is the seat, see `Seat.is_there`
                followed = self._followed_flight()
                self._folders[0].close()
                self._folders[0] = followed
                self._look_ns = now_ns

    def _follow(self, now_ns: int) -> None:
        """Notes which names are new and which are gone."""
        self._look_ns = None if all(one.is_heard for one in self._folders) else now_ns + _EVERY_NS
        names = set(self._files.names())
        for name, known in list(self._known.items()):
            if name not in names and not (known.life is not None and known.life.has_more):
                self._known.pop(name).let_go()
        for name in sorted(names - self._known.keys()):
            self._known[name] = _FileState(due_ns=now_ns)

    def _attend(self, name: str, known: _FileState, now_ns: int, *, is_rung: bool) -> None:
        """Nothing that a file brings about gets out of here."""
        try:
            self._deal_with(name, known, now_ns, is_rung=is_rung)
        except StoreFailure as failure:
            self._store_tries.fail(now_ns)
            known.due_ns = self._store_tries.until_ns
            self._say(str(failure))
        except Exception as error:  # noqa: BLE001 - one bad file must not stop the others
            self._let_go(known, now_ns)
            self._try_again(known, now_ns)
            # Its program or a command may be moving or removing it; then there is something else next time.
            if known.due_ns is None or not isinstance(error, FileNotFoundError):
                self._say(f"{name}: {type(error).__name__}: {error}")

    def _deal_with(self, name: str, known: _FileState, now_ns: int, *, is_rung: bool) -> None:
        life = known.life
        if life is None:
            life = known.life = self._files.open(name)
            if life is not None and life.pid is not None:
                known.descriptor = _pidfd(life.pid)
                # Before the first stall is read: a command leaves to us what the status names.
                self._write_status(now_ns)
        # After the descriptor is open: a number that was given out again is of no process of ours.
        # What rings lives; where its descriptor shows the end, nothing else is asked.
        asks = not is_rung or known.descriptor is None
        if life is None or (asks and life.is_over()):
            if self._store_tries.holds(now_ns):
                known.due_ns = self._store_tries.until_ns
                return
            if life is not None:
                life.finish(now_ns)
                known.death = life.death
            self._let_go(known, now_ns)
            self._files.recover(name, known.death)
            self._store_tries.succeed()
            self._try_again(known, now_ns)
            return
        had_more = life.has_more
        due_ns = life.look(now_ns)
        known.tries.succeed()
        if had_more and not life.has_more:
            self._look_ns = now_ns  # its name may be gone
        if known.descriptor is None:
            due_ns = min(now_ns + _EVERY_NS, due_ns or now_ns + _EVERY_NS)
        known.due_ns = due_ns

    def _let_go(self, known: _FileState, now_ns: int) -> None:
        known.due_ns = now_ns
        with suppress(Exception):
            known.let_go()

    def _try_again(self, known: _FileState, now_ns: int) -> None:
        """If it is still there then: it may be in the making, or another process is about to recover it."""
        known.tries.fail(now_ns)
        known.due_ns = known.tries.until_ns if known.tries.failures <= _TRIES else None

    # ---- reports and messages ---------------------------------------------------------------

    def _say(self, line: str) -> None:
        if line not in self._complaints and len(self._complaints) < 1_000:
            self._complaints.add(line)
            self._complain(line)

    def _write_status(self, now_ns: int) -> None:
        """Writes the status at once where other processes are watched than before, else once a second at
        most."""
        lives = [known.life for known in self._known.values() if known.life is not None]
        watched = sorted(life.pid for life in lives if life.pid is not None)
        elsewhere = len(lives) - len(watched)
        status = {**self._about, "watched": watched, "elsewhere": elsewhere, **self._files.status()}
        last_ns, last = self._status
        soonest_ns = last_ns + _EVERY_NS
        if status == last:
            self._status_ns = None
        elif now_ns < soonest_ns and (watched, elsewhere) == (last.get("watched"), last.get("elsewhere")):
            self._status_ns = soonest_ns
        else:
            self._status, self._status_ns = (now_ns, status), None
            self.seat.write_status(status)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:  # gone, or a kernel or sandbox without them
        return None


def _is_due(due_ns: int | None, now_ns: int) -> bool:
    return due_ns is not None and due_ns <= now_ns


class Backoff:
    """`first_ns` after the first failure, then twice as long each time, `most_ns` at most."""

    def __init__(self, first_ns: int, most_ns: int) -> None:
        self._first_ns = first_ns
        self._most_ns = most_ns
        self.failures = 0
        self.until_ns: int | None = None
        """When to try again; None: nothing failed."""

    def fail(self, now_ns: int) -> None:
        wait_ns = min(self._first_ns << min(self.failures, 32), self._most_ns)
        self.failures += 1
        self.until_ns = now_ns + wait_ns

    def succeed(self) -> None:
        self.failures, self.until_ns = 0, None

    def holds(self, now_ns: int) -> bool:
        """Whether it is too early for another try."""
        return self.until_ns is not None and now_ns < self.until_ns


class DeathNote(Protocol):
    """What is known of the end of a process."""

    status: int | None
    """As `wait` has it; None: not known."""
    ended_ns: int | None
    """When the end was seen, monotonic; None: not known."""


class WatchedLife(Protocol):
    """A watched process, by its flight file. The file is not trusted: any method may raise."""

    pid: int | None
    """Its number here; None: it has none in this namespace, or that cannot be said."""

    @property
    def death(self) -> DeathNote | None:
        """None: of a process that has no number here."""

    @property
    def has_more(self) -> bool:
        """Whether it still has something to say, though its file may be gone."""

    def is_over(self) -> bool:
        """Whether the process has certainly ended."""

    def look(self, now_ns: int) -> int | None:
        """Has the stalls of a living process judged and stored. When to look again at the latest; None: when
        the bell rings. Raises what `Files.recover` does."""

    def finish(self, now_ns: int) -> None:
        """Stores what is complete, after the end of the process; `Files.recover` stores the rest. Raises what
        that does."""

    def close(self) -> None:
        """Lets go of the file."""


class Files(Protocol):
    """The flight files of one store."""

    @property
    def folder(self) -> Path:
        """Where they, or links to them, are."""

    def begin(self) -> None:
        """The store's seat is this keeper's now."""

    def names(self) -> Collection[str]:
        """The names of all files in the folder that may have to be dealt with."""

    def link(self, name: str) -> bool:
        """A living program's file has this name: makes the link to it again, where the store was removed
        beside the program. Whether it did. OSError where that cannot be done."""

    def open(self, name: str) -> WatchedLife | None:
        """The process of this file; None where there is none (yet), or it is not ours to watch."""

    def recover(self, name: str, death: DeathNote | None) -> None:
        """Stores what a dead process left, and removes its file; leaves a living one's alone. `death`: of
        the life that there was.

        StoreFailure where the store fails."""

    def hand_on(self, now_ns: int) -> int | None:
        """Hands on what is new; after each turn. When to call it again; None: after the next turn."""

    def end(self) -> None:
        """Nothing more comes."""

    def status(self) -> dict[str, object]:
        """For people: what was recovered."""


class StoreFailure(Exception):  # noqa: N818 - a result rather than an error of ours
    """The store cannot be used now: a full disk, a lock that is held. Later it may."""
