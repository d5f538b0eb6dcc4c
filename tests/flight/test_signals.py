"""Signals that a flight file names: who sent them, and what they say of the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flight.build import FlightBuilder, put

from loopcanary.flight import FlightFile
from loopcanary.flight import signals as layout
from loopcanary.model import KilledBy

OWN_PID = 41
TERM = {"number": 15, "code": 0, "pid": 7, "uid": 1000, "at_ns": 50, "ends": 1, "command": b"sh -c x"}
HANDLED = TERM | {"ends": 0}
BY_SH = KilledBy(signal="SIGTERM", pid=7, uid=1000, command="sh -c x")
HANDLED_BEFORE = KilledBy(reason="SIGTERM came before, from sh -c x (pid 7)")


def said(*signals: dict[str, Any], since_ns: int = 40) -> KilledBy | None:
    """`signals`: in the order in which they came."""
    builder = FlightBuilder()
    put(builder.data, layout.SIGNALS, layout.SIGNALS_OFFSET, {"seen": len(signals)})
    kept = layout.SIGNALS_OFFSET + layout.SIGNALS.offsets["kept"]
    for index, one in enumerate(signals):
        place = kept + index % layout.SIGNALS_KEPT * layout.SIGNAL_ENTRY.size
        put(builder.data, layout.SIGNAL_ENTRY, place, {"sequence": index + 1} | one)
    return FlightFile(bytes(builder)).header.killed_by(since_ns)


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
    ],
)
def test_who_ended_it(signals: list[dict[str, Any]], answer: KilledBy | None) -> None:
    assert said(*signals) == answer


@given(st.binary(min_size=layout.SIGNALS.size, max_size=layout.SIGNALS.size))
def test_of_any_bytes_something_or_nothing_is_said(data: bytes) -> None:
    builder = FlightBuilder()
    builder.data[layout.SIGNALS_OFFSET : layout.SIGNALS_OFFSET + len(data)] = data
    told = FlightFile(bytes(builder)).header.killed_by(0)
    assert told is None or told.signal or told.reason
