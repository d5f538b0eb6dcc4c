"""Whether the loops of running programs make progress, from their flight files; for `loopcanary health`.

Programs are asked nothing: an answer would need the very thread that may hang. Nothing is loaded that is not
needed, as orchestrators ask every few seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from loopcanary import flight
from loopcanary.engine.flight_place import SHARED_MEMORY, in_memory
from loopcanary.engine.recorder import SUFFIX
from loopcanary.model.live import ProgramProgress, progress_of
from loopcanary.whose_folder import REACHED, below

_STOPPED = b"T"
_NAME_MAX = 200


def programs(
    stores: Iterable[Path] = (),
    *,
    pid: int | None = None,
    name: str | None = None,
    shared_memory: Path = SHARED_MEMORY,
) -> list[ProgramProgress]:
    """Of every watched program that runs, oldest first.

    Args:
        stores: Folders of stores, for programs whose flight files do not lie in shared memory.
        pid: Only this one.
        name: Only programs of this name.
        shared_memory: Where the others' lie.
    """
    found: dict[tuple[int, int] | None, ProgramProgress] = {}
    for path in _paths(stores, shared_memory):
        with suppress(flight.FlightError, OSError), flight.FlightFile.open(path) as file:
            header = file.header
            if (pid is None or header.pid == pid) and file.identity not in found and runs(file, header):
                found[file.identity] = _progress(file, header)
    wanted = (one for one in found.values() if name in (None, one.name))
    return sorted(wanted, key=lambda one: (one.started_ns, one.pid))


def _paths(stores: Iterable[Path], shared_memory: Path) -> Iterator[Path]:
    yield from in_memory(shared_memory)
    for store in stores:
        from loopcanary.store import FLIGHT_FOLDER  # few ask for it

        with suppress(OSError):
            folder = Path(below(str(store), FLIGHT_FOLDER, theirs=True))
            names = (path for path in folder.iterdir() if path.name.endswith(SUFFIX))
            yield from (path if str(path).startswith(REACHED) else path.resolve() for path in names)


def runs(file: flight.FlightFile, header: flight.FlightHeader) -> bool:
    """Whether the process of this flight file runs."""
    if header.ended_ns is not None:
        return False
    alive = flight.liveness(header)
    if alive is flight.Liveness.UNKNOWABLE:  # of another container: the number says nothing here
        return flight.holds_lock(Path(file.name)) is True
    if alive is flight.Liveness.DEAD:
        return False
    # A program without the lock has closed all its descriptors, or has become another one (exec).
    return flight.holds_lock(Path(file.name)) is not False or flight.maps(header.pid, file.name) is not False


def _progress(file: flight.FlightFile, header: flight.FlightHeader) -> ProgramProgress:
    glances, now_ns = file.glances(), time.monotonic_ns()
    lanes, _ = glances.look()
    hang = glances.hang()
    facts = file.facts()
    name = facts.get("name")
    names, has_dead_main = _deadlock(file)
    return ProgramProgress(
        name=name[:_NAME_MAX] if isinstance(name, str) and name else f"process {header.pid}",
        pid=header.pid,
        started_ns=header.started_ns,
        is_stopped=_is_stopped(header),
        loops=progress_of(lanes, now_ns),
        hang=None if hang is None else hang[0],
        hang_ns=0 if hang is None else max(0, now_ns - hang[1]),
        deadlock=names,
        has_dead_main=has_dead_main,
    )


def _deadlock(file: flight.FlightFile) -> tuple[tuple[str, ...], bool]:
    """See ProgramProgress."""
    look = file.look(has_circle=True)
    if look is None:
        return (), False
    from loopcanary.model.circles import behind

    sights = look.sights()
    circles = look.circles_of(sights)
    names = tuple(sights[number].name[:_NAME_MAX] for circle in circles for number in circle)
    return names, any(sights[number].is_main for circle in circles for number in behind(circle, sights))


def _is_stopped(header: flight.FlightHeader) -> bool:
    """By a signal. A process that a debugger holds for a moment is not."""
    if flight.liveness(header) is not flight.Liveness.RUNNING:
        return False
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{header.pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] == _STOPPED
    return False
