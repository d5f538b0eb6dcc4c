"""The native engine's life in this process: its flight file and its watchdog.

The file belongs in memory: a store to a page of a disk file can block in the kernel for as long as the
disk does (the JVM's hsperfdata pauses), and lanes are stored to from the thread that must not block. The
store's `flight` folder then holds a symbolic link to it. Without a tmpfs the file lies in that folder. Where
the store cannot be written, the file is in memory and has no name: no later process could find it.
"""

from __future__ import annotations

import os
import sys
from _json import encode_basestring

from loopcanary.facts import is_unfrozen
from loopcanary.model.config import ANR_NS, BOOT_HANG_NS, EXIT_HANG_NS, HANG_NS, LOOK_NS
from loopcanary.patches import Patches
from loopcanary.whose_exception import ours, ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.model.config import Config

    KeeperLine = tuple[tuple[bytes, ...], tuple[bytes, ...], bytes, bytes]
    """What starts a keeper: its words, environment and mark; and its bell."""

MEMORY = "/dev/shm"  # noqa: S108 - a tmpfs by definition of the kernel's documentation
SUFFIX = ".flight"
SAVED = ".saved"
"""Suffix of the copy that the watchdog makes on disk when a stall becomes a hang."""
TRACES = ".traces"
"""As model.trace_cells has it, which most programs do not load."""
START = ".start"
PATCHES = ".patches"
BESIDE = (START, TRACES, PATCHES, ".errand", ".errand-ends", ".answer")
"""Behind the file's path: the notes of the process's start."""
DRAIN, KEEPER = 0, 1
"""Who takes stalls, as flight.format.TakenBy has it."""
_NEIGHBOURS_MAX = 16
PATIENCE_S = 2.0
"""How long an end waits for the watchdog: less than callers wait for the drain, which still has to store."""
SIGNAL_PATIENCE_NS, FAULT_PATIENCE_NS = 50_000_000, 500_000_000
"""How long a signal is held back in a stall until all threads have been read; and a fault anywhere, for
longer: most programs die of one, and on a machine under full load there would be nothing to say of it."""


class FlightPlace:
    """One candidate: the file, and the link to it in the store (None where the file is in the store)."""

    def __init__(self, path: str, link: str | None, *, is_nameless: bool = False) -> None:
        """`is_nameless`: its names are to be removed as soon as it is open: no later process is led to it."""
        self.path = path
        self.link = link
        self.is_nameless = is_nameless
        self.saved = None if link is None else link.removesuffix(SUFFIX) + SAVED
        """Where evidence of hangs is copied to, so that it outlives the memory; None where the file is on
        disk anyway."""

    def prepare(self) -> None:
        """Makes the store's flight folder and the link. OSError where they cannot be made."""
        if self.is_nameless:
            return
        folder = os.path.dirname(self.link or self.path)
        for one in (os.path.dirname(folder), folder):
            # The mode of `makedirs` is for the last folder only; the store's own is private, too.
            os.makedirs(one, mode=0o700, exist_ok=True)
        if self.link is not None:
            os.symlink(self.path, self.link)

    def link_again(self) -> None:
        """Where the store was removed beside the program. OSError as above."""
        if self.link is not None and not os.path.lexists(self.link):
            self.prepare()

    def discard(self) -> None:
        """Removes the file with what lies beside it, and its link; what is not there is no error."""
        if os.path.lexists(self.path + ".methods"):
            from loopcanary.model.method_map import remove_beside  # most programs trace no calls

            remove_beside(self.path)
        # The copy first: alone it is what a killed process leaves, and a keeper takes it in at once. What
        # lies beside the file before it: nobody looks for that alone, where the process is killed here.
        for path in (self.saved, *(self.path + suffix for suffix in BESIDE), self.link, self.path):
            try:
                if path is not None:
                    os.unlink(path)
            except ours_of(OSError):
                pass

    def settle(self) -> None:
        """Moves the file, when its writer is gone, out of memory to where its link is, with what lies
        beside it, but for what a keeper takes in meanwhile. OSError where there is no room."""
        if self.link is None or self.is_nameless:
            return
        folder, name = os.path.split(self.path)
        beside = [one for one in os.listdir(folder) if one.startswith(name + ".")]
        for one in (*beside, name):  # itself last: it makes the others count
            source = os.path.join(folder, one)
            if one.endswith(PATCHES):  # a dead process has none
                _remove(source)
            else:
                _move(source, self.link + one.removeprefix(name))

    def save(self) -> None:
        """Copies the file to disk as the watchdog does in a hang: the memory may go with the container. File
        and link stay where a keeper looks. OSError where there is no room."""
        if self.link is None or self.saved is None or self.is_nameless:
            return
        try:
            if _copy_file(self.path, self.saved) and not os.path.lexists(self.link):
                _remove(self.saved)  # it has been taken in meanwhile
        except ours_of(FileNotFoundError):
            pass  # the program has removed its store


def _move(source: str, target: str) -> None:
    if _copy_file(source, target) and not _remove(source):  # it has been taken in meanwhile
        _remove(target)


def _remove(path: str) -> bool:
    """False where another process has removed it."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def _copy_file(source: str, target: str) -> bool:
    """Its holes stay holes. False where another process has removed it."""
    aside = target + ".new"
    no_link = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        read = os.open(source, os.O_RDONLY | no_link)
    except FileNotFoundError:
        return False
    write = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | no_link, 0o600)
    try:
        _copy(read, write, os.fstat(read).st_size)
        os.rename(aside, target)
    except ours_of(OSError):
        _remove(aside)
        raise
    finally:
        os.close(read)
        os.close(write)
    return True


def _copy(read: int, write: int, size: int) -> None:
    os.truncate(write, size)
    end = 0
    while end < size:
        try:
            begin = os.lseek(read, end, os.SEEK_DATA)
        except ours_of(OSError):  # the rest is a hole
            return
        end = os.lseek(read, begin, os.SEEK_HOLE)
        data = os.pread(read, end - begin, begin)
        if os.pwrite(write, data, begin) != len(data):
            raise OSError("the disk is full")


def candidates(
    folder: str, session_id: str, memory: str = MEMORY, *, wanted: str | None = None
) -> Iterator[FlightPlace]:
    """Places for the flight file of a session, best first. `folder`: the store's flight folder; `wanted`: the
    setting `flight_dir`."""
    name = session_id + SUFFIX
    there = [one for one in (wanted, memory) if one is not None and os.path.isdir(one)]
    paths = [os.path.join(one, name_in_memory(os.geteuid(), name)) for one in there]
    for path in paths:
        yield FlightPlace(path, os.path.join(folder, name))
    yield FlightPlace(os.path.join(folder, name), None)
    for path in paths:
        yield FlightPlace(path, None, is_nameless=True)


def name_in_memory(user: int, name: str) -> str:
    """Name of the file to which a user's link of that name leads, and to which no other link does."""
    return f"loopcanary-{user}-{name}"


def is_crowded(folder: str) -> bool:
    """Whether so many flight files lie there that a keeper should take some in."""
    try:
        return len(os.listdir(folder)) > _NEIGHBOURS_MAX
    except ours_of(OSError):
        return False


def _as_json(value: Any) -> str:
    """Facts have plain values only: `json` would take 2 ms of each watched start."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        return (
            "{" + ",".join([f"{encode_basestring(key)}:{_as_json(one)}" for key, one in value.items()]) + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_as_json, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


class Recorder:
    """GIL held in every method."""

    name = "native"

    def __init__(self, native: Native, config: Config, *, folder: str, session_id: str) -> None:
        """`folder`: of the store's flight files."""
        self.native = native
        self._config = config
        self.folder = folder
        self._session_id = session_id
        self.place: FlightPlace | None = None
        self.file: str | None = None
        """The flight file, while there is one."""
        self.is_over = False

    def record(self, *, keeper: KeeperLine | None = None) -> None:
        """Creates the flight file in the best place that works. OSError or RuntimeError with the reason.

        `keeper`: one takes the stalls; it finds no file that has no name.
        """
        errors = []
        for place in candidates(self.folder, self._session_id, wanted=self._config.flight_dir):
            if keeper is not None and place.is_nameless:
                continue
            try:
                self._start_at(place, keeper)
            except ours_of(OSError) as error:
                place.discard()
                # What could not be made is not always the file: a link to it, or the store's folder.
                errors.append(f"{error.filename2 or error.filename or place.path}: {error.strerror or error}")
            else:
                return
        raise OSError("no place for the flight file: " + "; ".join(errors))

    def _start_at(self, place: FlightPlace, keeper: KeeperLine | None) -> None:
        place.prepare()
        if keeper is not None:
            self.native.set_keeper(*keeper, os.fsencode(os.path.basename(place.link or "")))
        try:
            self.native.start(
                path=place.path,
                facts=b"{}",
                threshold_ns=self._config.threshold_ns,
                sample_delay_ns=self._config.first_sample_ns,
                sample_interval_ns=self._config.sample_interval_ns,
                hang_ns=HANG_NS,
                anr_ns=ANR_NS,
                boot_ns=BOOT_HANG_NS,
                exit_ns=EXIT_HANG_NS,
                look_ns=LOOK_NS,
                takes_keeper=keeper is not None,
                stalls_per_minute=self._config.stalls_per_minute if keeper is not None else 0,
                **self._asked_for(place),
            )
        except ours():
            raise
        except BaseException:  # a handler of a signal raised it when this one had begun
            self._give_up(place)
            raise
        self.place, self.file = place, place.path
        if place.is_nameless:
            place.discard()

    def _asked_for(self, place: FlightPlace) -> dict[str, Any]:
        """Arguments of the engine that most programs do not need."""
        more: dict[str, Any] = {} if place.saved is None else {"checkpoint": place.saved}
        if self._config.sd_watchdog and (feed := feed_wanted(os.environ)) is not None:
            more["notify_socket"], more["feed_ns"] = feed
        if self._config.exit_when_hung_ns:
            more["exit_hung_ns"] = self._config.exit_when_hung_ns
        if self._config.signals:
            from signal import Signals  # few programs ask for it

            more["signals"] = sum(1 << Signals[name] for name in {*self._config.signals})
            more["signal_patience_ns"] = SIGNAL_PATIENCE_NS
            more["fault_patience_ns"] = FAULT_PATIENCE_NS
        return more

    def _give_up(self, place: FlightPlace) -> None:
        self.native.stop(False, PATIENCE_S)
        place.discard()

    def set_facts(self, facts: dict[str, Any]) -> bool:
        """Stores the session's facts in the flight file; False where they are too long for it."""
        return bool(self.native.set_facts(_as_json(facts).encode("utf-8", "replace")))

    def rest(self, patience_s: float) -> int:
        """Ends the native threads. Lanes go on; in between only samples are missed. How many ended in
        time."""
        return self.native.pause(patience_s)

    def go_on(self) -> None:
        """Starts the watchdog's thread again. OSError where the system gives none."""
        self.native.resume()

    def stop(self) -> None:
        """Ends the watchdog, which completes what has ended; the file can be read until `discard`. One
        that does not end in time (a disk that holds up its checkpoint) is left alone."""
        # A drain that was too late for its own end may find that the program has installed us again: there is
        # one engine in a process, and that is no longer this one.
        if not self.is_over:
            self.native.stop(True, PATIENCE_S)
            self.is_over = True

    def discard(self) -> None:
        """Removes the flight file: all that it held has been taken."""
        if self.place is not None:
            self.place.discard()
            self.place = self.file = None

    @property
    def listener(self) -> Any:
        """Gets scenes and work from `scopes`: the extension itself."""
        return self.native


def feed_wanted(environment: Mapping[str, str]) -> tuple[bytes, int] | None:
    """What a service manager such as systemd wants to hear of this process (sd_watchdog_enabled(3)), from its
    environment: the manager's socket, and how often to feed it in ns, twice in the time that it waits. None:
    it does not wait for this process. A forked child inherits the variables, but not the number in
    WATCHDOG_PID; without that number nobody knows who is meant."""
    socket = environment.get("NOTIFY_SOCKET", "")
    waits_us = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID") != str(os.getpid()) or socket[:1] not in ("/", "@"):
        return None
    if not (waits_us.isascii() and waits_us.isdigit()) or not 0 < len(waits_us) <= 15 or int(waits_us) < 2:
        return None
    return os.fsencode(socket), int(waits_us) * 1000 // 2


def note_start(native: Native, file: str | None, config: Config, begun_ns: int) -> None:
    """Notes the start of this process, which was not forked, beside its flight file, if that has a name. A
    short record, of what `loopcanary run` was given, has no limit and no imports. `begun_ns`: when
    loopcanary's first line ran, monotonic; 0: in the middle of the program."""
    is_whole, by_run = config.startup, os.environ.get("LOOPCANARY_RUN_PID") == str(os.getpid())
    # Taken away: a program that becomes another one by exec has started long ago.
    run_ns = os.environ.pop("LOOPCANARY_RUN_NS", "") if by_run else ""
    began_ns = int(run_ns) if run_ns.isdigit() else 0
    is_start = bool(began_ns) if by_run else is_whole
    if is_start and file is not None and os.path.exists(file):
        slow_ns = config.warm_start_ns if is_whole else 0
        patches = Patches()
        over = patches.take_back if is_whole else None
        if native.start_notes(file + START, begun_ns, began_ns, slow_ns, over, is_unfrozen()):
            patches.put(sys.modules["_frozen_importlib"], "_find_and_load", native.start_import)
            loader = sys.modules["_frozen_importlib_external"].FileLoader
            patches.put(loader, "get_data", native.start_read)
