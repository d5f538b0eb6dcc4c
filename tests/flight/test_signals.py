"""Signals that a flight file names: who sent them, and what they say of the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.flight_file import FlightBuilder, put

from loopcanary.flight import FlightFile
from loopcanary.flight import signals as layout
from loopcanary.model import Fault, KilledBy

OWN_PID = 41
TERM = {"number": 15, "code": 0, "pid": 7, "uid": 1000, "at_ns": 50, "ends": 1, "command": b"sh -c x"}
FAULT = TERM | {"number": 11, "code": 1, "tid": 44}
HANDLED = TERM | {"ends": 0}
BY_SH = KilledBy(signal="SIGTERM", pid=7, uid=1000, command="sh -c x")
HANDLED_BEFORE = KilledBy(reason="SIGTERM came before, from sh -c x (pid 7)")


def said(*signals: dict[str, Any], since_ns: int = 40) -> KilledBy | None:
    """`signals`: in the order in which they came."""
    return file_with(*signals).header.killed_by(since_ns)


def file_with(*signals: dict[str, Any], named: int = 100) -> FlightFile:
    """`named`: of how many the watchdog has looked for the sender."""
    builder = FlightBuilder()
    put(builder.data, layout.SIGNALS, layout.SIGNALS_OFFSET, {"seen": len(signals), "named": named})
    kept = layout.SIGNALS_OFFSET + layout.SIGNALS.offsets["kept"]
    for index, one in enumerate(signals):
        place = kept + index % layout.SIGNALS_KEPT * layout.SIGNAL_ENTRY.size
        put(builder.data, layout.SIGNAL_ENTRY, place, {"sequence": index + 1} | one)
    return FlightFile(bytes(builder))


@pytest.mark.parametrize(
    ("signals", "answer"),
    [
        ([], None),
        ([TERM], BY_SH),
        ([HANDLED], HANDLED_BEFORE),
        ([HANDLED | {"pid": 0}], KilledBy(reason="SIGTERM came before, from outside the container")),
        ([HANDLED | {"command": b""}], KilledBy(reason="SIGTERM came before, from a process (pid 7)")),
        ([HANDLED | {"code": 128}], KilledBy(reason="SIGTERM came before, from the kernel")),
        ([TERM | {"pid": OWN_PID}], KilledBy(signal="SIGTERM", reason="sent by the process itself")),
        ([HANDLED | {"pid": OWN_PID}], KilledBy(reason="SIGTERM came before, from the process itself")),
        ([HANDLED, TERM | {"pid": OWN_PID}], BY_SH),
        ([HANDLED, TERM | {"number": 6}], KilledBy(signal="SIGABRT", pid=7, uid=1000, command="sh -c x")),
        ([HANDLED, HANDLED | {"number": 14, "code": 128}], HANDLED_BEFORE),
        ([TERM | {"at_ns": 39}], None),
        ([TERM | {"sequence": 0}], None),
        ([TERM | {"number": 50}], KilledBy(signal="signal 50", pid=7, uid=1000, command="sh -c x")),
        ([TERM | {"number": 0}], None),
        ([TERM | {"number": 1 << 40}], None),
        ([HANDLED] * layout.SIGNALS_KEPT + [TERM], BY_SH),
        ([TERM | {"code": (1 << 64) - 6}], BY_SH),
        ([FAULT], KilledBy(signal="SIGSEGV", reason="a fault of the program itself, in thread 44")),
        ([FAULT | {"ends": 0}], KilledBy(reason="SIGSEGV came before, from thread 44 itself")),
        (
            [FAULT | {"ends": 0}, FAULT],
            KilledBy(signal="SIGSEGV", reason="a fault of the program itself, in thread 44"),
        ),
        (
            [FAULT | {"ends": 0}, TERM | {"number": 11, "code": (1 << 64) - 6, "pid": OWN_PID}],
            KilledBy(signal="SIGSEGV", reason="a fault of the program itself, in thread 44"),
        ),
        (
            [FAULT | {"stack": 1}],
            KilledBy(
                signal="SIGSEGV",
                reason="a fault of the program itself, in thread 44, whose stack has run over",
            ),
        ),
        ([FAULT | {"code": 0}], KilledBy(signal="SIGSEGV", pid=7, uid=1000, command="sh -c x")),
        ([FAULT | {"number": 15, "command": b""}], KilledBy(signal="SIGTERM")),
    ],
)
def test_who_ended_it(signals: list[dict[str, Any]], answer: KilledBy | None) -> None:
    assert said(*signals) == answer


OVER = Fault(signal="SIGSEGV", is_stack_over=True)
AGAIN = TERM | {"number": 11, "code": (1 << 64) - 6, "pid": OWN_PID, "tid": 44}


@pytest.mark.parametrize(
    ("signals", "answer"),
    [
        ([FAULT], Fault(signal="SIGSEGV")),
        ([FAULT | {"stack": 1}], OVER),
        ([FAULT | {"number": 7}], Fault(signal="SIGBUS")),
        # A crash reporter faults itself.
        ([FAULT | {"stack": 1, "ends": 0}, FAULT | {"stack": 2}], OVER),
        ([FAULT | {"tid": 45, "ends": 0}, FAULT | {"stack": 2}], Fault(signal="SIGSEGV")),
        ([FAULT | {"ends": 0}, AGAIN], Fault(signal="SIGSEGV")),  # a crash reporter sends it once more
        ([FAULT | {"ends": 0}], None),  # the program has survived it
        ([FAULT | {"ends": 0}, TERM], None),
        ([FAULT | {"ends": 0}, FAULT | {"tid": 45}], None),
        ([FAULT | {"at_ns": 39}], None),
        ([FAULT | {"code": 0}], None),
        ([], None),
    ],
)
def test_the_fault_of_a_thread_by_which_the_process_ended(
    signals: list[dict[str, Any]], answer: Fault | None
) -> None:
    assert file_with(*signals).header.fault_of(44, 40) == answer


@pytest.mark.parametrize(
    ("signals", "end_ns", "from_whom"),
    [
        ([HANDLED], 1_000_050, "sh -c x (pid 7)"),
        ([HANDLED | {"pid": 0}, TERM, HANDLED | {"at_ns": 2_000_000}], 1_000_050, "outside the container"),
        ([HANDLED, HANDLED | {"pid": OWN_PID}], 1_000_050, "sh -c x (pid 7)"),
        ([HANDLED | {"pid": OWN_PID}], 1_000_050, None),
        ([HANDLED | {"code": 128}], 1_000_050, None),
        ([HANDLED | {"at_ns": 39}], 1_000_050, None),
        ([HANDLED], 49, None),
        ([HANDLED], None, None),
        ([TERM], 1_000_050, None),
        ([], 1_000_050, None),
    ],
)
def test_what_came_in_a_stall_that_has_ended(
    signals: list[dict[str, Any]], end_ns: int | None, from_whom: str | None
) -> None:
    answer = file_with(*signals).header.came_in(40, end_ns)
    reason = None if from_whom is None else f"SIGTERM came 1.00 ms before its end, from {from_whom}"
    assert (None if answer is None else answer.reason) == reason


def test_a_command_counts_once_the_watchdog_has_read_it() -> None:
    header = file_with(TERM, HANDLED, named=1).header
    assert [one.command for one in header.signals] == ["sh -c x", None]


@given(st.binary(min_size=layout.SIGNALS.size, max_size=layout.SIGNALS.size))
def test_of_any_bytes_something_or_nothing_is_said(data: bytes) -> None:
    builder = FlightBuilder()
    builder.data[layout.SIGNALS_OFFSET : layout.SIGNALS_OFFSET + len(data)] = data
    told = FlightFile(bytes(builder)).header.killed_by(0)
    assert told is None or told.signal or told.reason
