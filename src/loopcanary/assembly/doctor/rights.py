"""What this process may ask the kernel, and which evidence the latest run had to go without."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from loopcanary import store
from loopcanary.assembly.store import open_store
from loopcanary.engine import FEW, LEAST, LEAST_MB, allowed_descriptors, spare_address_space
from loopcanary.model import Config
from loopcanary.model.search import IssueQuery
from loopcanary.words.guards import lost_words

_CALL = Path("/proc/self/syscall")


def rights_facts(settings: Config) -> Iterator[tuple[str, str, str]]:
    """Rows of `doctor_facts`."""
    if sys.platform == "linux":
        yield _waits()
    if (descriptors := _descriptors()) is not None:
        yield descriptors
    if spare_address_space() == 0:
        yield "address space", "problem", f"nothing is watched: less than {LEAST_MB} MB are left (ulimit -v)"
    yield from _lost(settings)


def _waits() -> tuple[str, str, str]:
    try:
        _CALL.read_bytes()
    except FileNotFoundError:
        return (
            "waits",
            "off",
            f"this kernel does not show what system call a thread waits in: it has no {_CALL}",
        )
    except OSError as error:
        why = "this process is not dumpable (setuid, setcap)" if not _is_dumpable() else str(error)
        return (
            "waits",
            "off",
            f"the system call that a thread waits in cannot be read, so causes are less certain: {why}",
        )
    return "waits", "ok", "the kernel shows what system call a thread waits in"


def _is_dumpable() -> bool:
    # Files in /proc of a process that is not belong to root (proc(5)).
    return _CALL.stat().st_uid == os.geteuid()


def _descriptors() -> tuple[str, str, str] | None:
    allowed = allowed_descriptors()
    if allowed < LEAST:
        return (
            "descriptors",
            "problem",
            f"{allowed} allowed (ulimit -n): nothing is watched below {LEAST}",
        )
    if allowed < FEW:
        return (
            "descriptors",
            "off",
            f"{allowed} allowed (ulimit -n): loopcanary closes most of its own between stalls",
        )
    return None


def _lost(settings: Config) -> Iterator[tuple[str, str, str]]:
    try:
        with closing(open_store(store.find(settings.store).folder)) as opened:
            sessions = opened.reader.sessions(IssueQuery(), 1)
    except store.StoreError:
        return
    for session in sessions:
        for words in lost_words(session.statistics):
            yield "latest run", "off", f"{session.name} (pid {session.pid}): {words}"
