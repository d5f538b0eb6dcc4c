"""Signals that came to the process, and what they say of its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopcanary.flight.format import Layout
from loopcanary.flight.source import ByteSource
from loopcanary.model import KilledBy
from loopcanary.model.session import signal_name

SIGNALS_OFFSET: Final = 2048
SIGNALS_KEPT: Final = 8
COMMAND_BYTES: Final = 128
SIGNAL_ENTRY = Layout(
    "lc_signal_entry", f"Q sequence number code pid uid at_ns ends reserved\n{COMMAND_BYTES}s command"
)
SIGNALS = Layout("lc_signals", f"Q seen named\n48s reserved\n{SIGNALS_KEPT * SIGNAL_ENTRY.size}s kept")
"""As in native/core/flight/signal_format.h; test_format_agreement.py compares them."""

_SENT: Final = frozenset(code % (1 << 64) for code in (0, -1, -6))
"""Codes of those that a process has sent: SI_USER, SI_QUEUE, SI_TKILL of sigaction(2)."""
_NUMBERS: Final = range(1, 65)
_LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedSignal:
    """One that came."""

    name: str
    at_ns: int
    """Monotonic."""
    ends: bool
    """The program had no handler for it."""
    pid: int | None
    """Of its sender; 0: in no namespace that the process sees. None: no process has sent it."""
    uid: int | None
    command: str | None
    """Of the sender, if it lived still."""


def read_signals(source: ByteSource) -> tuple[NotedSignal, ...]:
    """The latest, oldest first."""
    if not any(source.read(SIGNALS_OFFSET, SIGNALS.width("seen"))):
        return ()  # as in most files, whose headers are read all the time
    data = source.read(SIGNALS_OFFSET + SIGNALS.offsets["kept"], SIGNALS.width("kept"))
    entries = [SIGNAL_ENTRY.read(data, index * SIGNAL_ENTRY.size) for index in range(SIGNALS_KEPT)]
    entries.sort(key=lambda entry: entry["sequence"])
    return tuple(_noted(entry) for entry in entries if entry["sequence"] and entry["number"] in _NUMBERS)


def _noted(entry: dict[str, Any]) -> NotedSignal:
    is_sent = entry["code"] in _SENT
    return NotedSignal(
        name=signal_name(entry["number"]),
        at_ns=min(entry["at_ns"], _LARGEST),
        ends=bool(entry["ends"]),
        pid=min(entry["pid"], _LARGEST) if is_sent else None,
        uid=min(entry["uid"], _LARGEST) if is_sent else None,
        command=entry["command"].partition(b"\0")[0].decode("utf-8", "replace") or None,
    )


def killed_by(signals: Sequence[NotedSignal], own_pid: int, since_ns: int) -> KilledBy | None:
    """What they say of the end of a process that is dead: the last that came from then on. None: none did."""
    came = [one for one in signals if one.at_ns >= since_ns]
    if not came:
        return None
    others = [one for one in came if one.pid not in (None, own_pid)]
    last = came[-1]
    if not last.ends:  # a handler had it; what ended the process came after it, and is not known here
        last = (others or came)[-1]
        return KilledBy(reason=f"{last.name} came before, from {_sender(last, own_pid)}")
    # A handler that has done its work sends the signal once more: who sent it first counts.
    first = next((one for one in others if one.name == last.name), last)
    if first.pid == own_pid:
        return KilledBy(signal=first.name, reason="sent by the process itself")
    return KilledBy(signal=first.name, pid=first.pid, uid=first.uid, command=first.command)


def _sender(one: NotedSignal, own_pid: int) -> str:
    if one.pid is None:
        return "the kernel"
    if one.pid == 0:
        return "outside the container"
    return "the process itself" if one.pid == own_pid else f"{one.command or 'a process'} (pid {one.pid})"
