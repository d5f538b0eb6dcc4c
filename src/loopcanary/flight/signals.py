"""Signals that came to the process, and what they say of its end."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from loopcanary.flight.format import Layout
from loopcanary.flight.source import ByteSource
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Fault, KilledBy
from loopcanary.model.session import signal_name
from loopcanary.model.units import format_duration

SIGNALS_OFFSET: Final = 2048
SIGNALS_KEPT: Final = 8
COMMAND_BYTES: Final = 120
SIGNAL_ENTRY = Layout(
    "lc_signal_entry",
    f"Q sequence number code pid uid at_ns ends tid\n{COMMAND_BYTES}s command\nQ stack",
)
SIGNALS = Layout("lc_signals", f"Q seen named\n48s reserved\n{SIGNALS_KEPT * SIGNAL_ENTRY.size}s kept")
"""As in native/core/flight/flight_format.h; test_format_agreement.py compares them."""

_SENT: Final = frozenset(code % (1 << 64) for code in (0, -1, -6))
"""Codes of those that a process has sent: SI_USER, SI_QUEUE, SI_TKILL of sigaction(2)."""
_STACK_OVER: Final = 1
_STACK_ALTERNATE: Final = 2
_NUMBERS: Final = range(1, 65)
_FAULTS: Final = frozenset((4, 7, 8, 11))
"""Linux's SIGILL, SIGBUS, SIGFPE, SIGSEGV."""
_LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedSignal:
    """One that came."""

    name: str
    at_ns: int
    """When it came, monotonic."""
    ends: bool
    """The program had no handler for it."""
    pid: int | None
    """Of its sender; 0: in no namespace that the process sees. None: no process has sent it."""
    uid: int | None
    command: str | None
    """Command of the sender, if that still lived."""
    fault_of: int | None = None
    """The thread that has caused it; None: it is not a fault."""
    is_stack_over: bool = False
    """The fault came where that thread's stack ends."""
    is_in_handler: bool = False
    """The fault came in a handler on an alternate stack."""


def read_signals(source: ByteSource) -> tuple[NotedSignal, ...]:
    """The latest signals, oldest first."""
    seen, named = struct.unpack("<QQ", source.read(SIGNALS_OFFSET, SIGNALS.offsets["reserved"]))
    if not seen:
        return ()  # as in most files, whose headers are read all the time
    data = source.read(SIGNALS_OFFSET + SIGNALS.offsets["kept"], SIGNALS.width("kept"))
    entries = [SIGNAL_ENTRY.read(data, index * SIGNAL_ENTRY.size) for index in range(SIGNALS_KEPT)]
    entries.sort(key=lambda entry: entry["sequence"])
    return tuple(
        _noted(entry, is_named=entry["sequence"] <= named)
        for entry in entries
        if entry["sequence"] and entry["number"] in _NUMBERS
    )


def _noted(entry: dict[str, Any], *, is_named: bool) -> NotedSignal:
    is_sent = entry["code"] in _SENT
    is_fault = not is_sent and entry["number"] in _FAULTS and entry["code"] <= _LARGEST
    return NotedSignal(
        name=signal_name(entry["number"]),
        at_ns=min(entry["at_ns"], _LARGEST),
        ends=bool(entry["ends"]),
        pid=min(entry["pid"], _LARGEST) if is_sent else None,
        uid=min(entry["uid"], _LARGEST) if is_sent else None,
        command=(is_named and entry["command"].partition(b"\0")[0].decode("utf-8", "replace")) or None,
        fault_of=min(entry["tid"], _LARGEST) if is_fault else None,
        is_stack_over=is_fault and bool(entry["stack"] & _STACK_OVER),
        is_in_handler=is_fault and bool(entry["stack"] & _STACK_ALTERNATE),
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
    fault = _fault_behind(last, came)
    if fault is not None:
        over = ", whose stack has run over" if fault.is_stack_over else ""
        return KilledBy(
            signal=fault.name, reason=f"a fault of the program itself, in thread {fault.fault_of}{over}"
        )
    if first.pid == own_pid:
        return KilledBy(signal=first.name, reason="sent by the process itself")
    return KilledBy(signal=first.name, pid=first.pid, uid=first.uid, command=first.command)


def fault_of(signals: Sequence[NotedSignal], tid: int, since_ns: int) -> Fault | None:
    """The fault of this thread from then on by which the process, which is dead, ended; None: none."""
    came = [one for one in signals if one.at_ns >= since_ns]
    fault = _fault_behind(came[-1], came) if came and came[-1].ends else None
    if fault is None or fault.fault_of != tid:
        return None
    return Fault(signal=fault.name, is_stack_over=fault.is_stack_over)


def _fault_behind(last: NotedSignal, came: Sequence[NotedSignal]) -> NotedSignal | None:
    """The last one of the signal that ended the process: a crash reporter sends it once more, or faults
    itself over what it reads (faulthandler reads frames that other threads change)."""
    faults = [one for one in came if one.fault_of is not None and one.name == last.name]
    while len(faults) > 1 and faults[-1].is_in_handler and faults[-2].fault_of == faults[-1].fault_of:
        faults.pop()
    return faults[-1] if faults else None


def came_in(signals: Sequence[NotedSignal], own_pid: int, begin_ns: int, end_ns: int) -> KilledBy | None:
    """What they say of a stall that has ended: the last one of another process that came in it, and that the
    program has a handler for. None: none did."""
    came = [
        one
        for one in signals
        if begin_ns <= one.at_ns <= end_ns and not one.ends and one.pid not in (None, own_pid)
    ]
    if not came:
        return None
    last = came[-1]
    ago = format_duration(end_ns - last.at_ns)
    return KilledBy(reason=f"{last.name} came {ago} before its end, from {_sender(last, own_pid)}")


def _sender(one: NotedSignal, own_pid: int) -> str:
    if one.pid is None:
        return "the kernel" if one.fault_of is None else f"thread {one.fault_of} itself"
    if one.pid == 0:
        return "outside the container"
    return "the process itself" if one.pid == own_pid else f"{one.command or 'a process'} (pid {one.pid})"
