"""Flight files that lie: a keeper refuses or serves them, is not kept busy, and stays alive."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.evidence import BEGIN, MS, going_on, stall, turn
from tests.building.flight_file import FlightBuilder
from tests.keeper.test_life import SESSION, Program

from loopcanary.flight import FlightError
from loopcanary.flight import format as layout
from loopcanary.flight.format import ProcessState, SectionKind, TakenBy
from loopcanary.wire import to_wire

pytestmark = pytest.mark.native
S = 1_000 * MS
EXTREMES = (0, 1, 2, 3, 255, 4096, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def flight(**header: Any) -> FlightBuilder:
    made = FlightBuilder(facts=to_wire(SESSION), takes=TakenBy.KEEPER, heartbeat_ns=BEGIN, **header)
    for one in (stall(), going_on(serial=4), turn(serial=5)):
        made.add_stall(one)
    return made


PLAIN = flight()
WORDS = [
    at + 8 * word
    for at, count in (
        (0, layout.HEADER.size // 8),
        (PLAIN.at(SectionKind.FACTS), 16),
        *((PLAIN.at(SectionKind.LANES, lane), 40) for lane in range(3)),
        *((PLAIN.at(SectionKind.SLOTS, slot), layout.SLOT_FACTS.size // 8) for slot in range(3)),
        (PLAIN.at(SectionKind.KEEPER), 24),
    )
    for word in range(count)
]
changes = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(EXTREMES)), min_size=1, max_size=6)


def serve(data: bytes, folder: Path) -> None:
    program = Program(folder)
    program.path.write_bytes(data)
    program.path.chmod(0o600)
    now: int | None = BEGIN + S
    try:
        for _ in range(12):
            before, now = now, program.look(now)
            if now is None:
                break
            assert before is not None
            assert now > before
        program.life.finish(BEGIN + 400 * S)
    except (FlightError, OSError, ValueError):
        pass  # said, and tried again later
    finally:
        program.close()


@settings(deadline=None, max_examples=40)
@given(changes=changes, ended=st.booleans())
def test_whatever_a_flight_file_says_is_survived(changes, ended):
    made = flight(state=ProcessState.ENDED, ended_ns=BEGIN + S) if ended else flight()
    for at, value in changes:
        made.data[at : at + 8] = value.to_bytes(8, "little")
    with TemporaryDirectory() as folder:
        serve(bytes(made), Path(folder))


@pytest.mark.parametrize(
    "facts",
    [
        {"settings": {"LOOPCANARY_LOG_FILE": "\0", "LOOPCANARY_THRESHOLD": "never", "x": 1}},
        {"settings": 5, "stderr": [], "code_paths": "x", "keeper": 7},
        {"stderr": {"speaks": True, "columns": -1}, "settings": {"LOOPCANARY_CONSOLE": "1"}},
        {"id": "../../../x", "name": "\x1b[2J", "pid": -1},
        {"code_paths": {"working": 9, "stdlib": [1, {}]}, "started_at": "never"},
    ],
)
def test_whatever_facts_a_program_has_are_survived(tmp_path: Path, facts: dict[str, Any]):
    made = flight()
    made.put_facts(json.dumps({**to_wire(SESSION), **facts}).encode())
    serve(bytes(made), tmp_path)


def test_a_file_that_is_cut_short_is_survived(tmp_path: Path):
    data = bytes(flight())
    for part in (0, 8, 4096, len(data) // 2, len(data) - 1):
        serve(data[:part], tmp_path)
