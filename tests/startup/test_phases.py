"""What was noted, as the phases of a start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopcanary.model import Clock, CodeOrigin, PhaseKind, StartKind, Startup
from loopcanary.model.issues.startup import NotedImport, StartNotes
from loopcanary.tracers.start_phases import start_of

MS = 1_000_000
AT = 1_000 * MS


def imported(name, begin_ms, end_ms, *, depth=0, origin=CodeOrigin.CACHED, faults=0):
    return NotedImport(
        name=name,
        depth=depth,
        begin_ns=AT + begin_ms * MS,
        end_ns=None if end_ms is None else AT + end_ms * MS,
        origin=origin,
        bytes_read=100,
        major_faults=faults,
    )


NOTES = StartNotes(
    process_ns=AT - 50 * MS,
    step_ns=10 * MS,
    run_ns=AT,
    hook_ns=AT + 20 * MS,
    watched_ns=AT + 40 * MS,
    site_over_ns=AT + 50 * MS,
    main_ns=AT + 51 * MS,
    ready_ns=None,
    listening_ns=None,
    idle_ns=None,
    answered_ns=None,
    frame_ns=None,
    over_ns=None,
    major_faults=0,
    imports=(
        imported("loopcanary.probes", 41, 42),
        imported("shop", 60, 160),
        imported("pandas", 70, 150, depth=1),
    ),
    left_out=0,
)


def made(notes: StartNotes, *, turn_ms: int | None = None, last_ms: int = 0) -> Startup:
    return start_of(
        notes,
        Clock(monotonic_ns=0, wall_ns=0),
        turn_ns=None if turn_ms is None else AT + turn_ms * MS,
        last_ns=AT + last_ms * MS,
        cold_ns=10_000 * MS,
        warm_ns=4_000 * MS,
    )


def outline(start: Startup) -> list[tuple[int, str, int, int]]:
    return [
        (one.depth, one.name or one.kind.value, one.offset_ns // MS, one.duration_ns // MS)
        for one in start.phases
    ]


def test_a_server_s_start_ends_when_its_port_listens():
    start = made(replace(NOTES, listening_ns=AT + 200 * MS, idle_ns=AT + 210 * MS), turn_ms=180)
    assert outline(start) == [
        (0, "interpreter", 0, 20),
        (0, "site", 20, 31),
        (1, "loopcanary", 20, 22),
        (2, "loopcanary.probes", 41, 1),
        (0, "first-turn", 51, 129),
        (1, "shop", 60, 100),
        (2, "pandas", 70, 80),
        (0, "listening", 180, 20),
    ]
    assert (start.duration_ns, start.run_ns, start.cut) == (200 * MS, 50 * MS, False)
    assert [phase.self_ns // MS for phase in start.phases] == [20, 9, 21, 1, 29, 20, 80, 20]


@pytest.mark.parametrize(
    ("noted", "last"),
    [
        ({"idle_ns": AT + 200 * MS}, PhaseKind.IDLE),
        ({"frame_ns": AT + 200 * MS, "idle_ns": AT + 300 * MS}, PhaseKind.FRAME),
        ({"over_ns": AT + 200 * MS}, PhaseKind.MAIN),
    ],
)
def test_the_first_of_its_ends_counts(noted, last):
    start = made(replace(NOTES, **noted))
    assert start.duration_ns == 200 * MS
    assert [phase.kind for phase in start.phases if phase.depth == 0][-1] is last


def test_a_start_that_was_killed_keeps_what_was_there():
    notes = replace(NOTES, imports=(imported("shop", 60, None), imported("pandas", 70, None, depth=1)))
    start = made(notes, last_ms=170)
    assert start.cut
    assert start.duration_ns == 170 * MS
    assert [(one.name, one.open, one.duration_ns // MS) for one in start.phases[-2:]] == [
        ("shop", True, 110),
        ("pandas", True, 100),
    ]


def test_no_stage_ends_in_the_middle_of_an_import():
    start = made(replace(NOTES, ready_ns=AT + 100 * MS, over_ns=AT + 200 * MS))
    kinds = [phase.kind for phase in start.phases if phase.depth == 0]
    assert kinds == [PhaseKind.INTERPRETER, PhaseKind.SITE, PhaseKind.MAIN]
    assert PhaseKind.READY in [one.kind for one in start.milestones]


def test_without_run_the_kernels_time_is_the_begin():
    start = made(replace(NOTES, run_ns=None, over_ns=AT + 200 * MS))
    assert (start.duration_ns, start.step_ns, start.run_ns) == (250 * MS, 10 * MS, 0)


def test_compiled_modules_and_disk_reads_make_it_cold():
    over = replace(NOTES, over_ns=AT + 200 * MS)
    compiled = replace(over, imports=(imported("shop", 60, 160, origin=CodeOrigin.COMPILED),))
    assert made(over).start is StartKind.WARM
    assert made(compiled).start is StartKind.COLD
    assert made(replace(over, major_faults=500)).start is StartKind.COLD
    assert made(compiled).threshold_ns == 10_000 * MS


def test_the_heaviest_import_is_named_as_what_to_change():
    advice = made(replace(NOTES, over_ns=AT + 200 * MS)).advice
    assert advice is not None
    assert advice.startswith("import shop took 50 % of the start")


def test_collections_that_took_a_tenth_have_advice():
    over = replace(NOTES, imports=(), over_ns=AT + 200 * MS, collections=12)
    advice = made(replace(over, gc_ns=25 * MS)).advice
    assert advice is not None
    assert advice.startswith("12 garbage collections took 12 % of the start: call `gc.disable()` first")
    assert "`gc.freeze()`" in advice
    assert made(replace(over, gc_ns=19 * MS)).advice is None


def test_frozen_modules_have_advice_where_it_matters():
    quick = replace(
        NOTES,
        imports=(),
        hook_ns=AT + 60 * MS,
        watched_ns=AT + 80 * MS,
        site_over_ns=AT + 85 * MS,
        main_ns=AT + 90 * MS,
        over_ns=AT + 100 * MS,
    )
    advice = made(replace(quick, is_unfrozen=True)).advice
    assert advice is not None
    assert advice.startswith("the interpreter's start took 60 % of it")
    assert "`-X frozen_modules=on`" in advice
    assert made(quick).advice is None
    assert made(replace(quick, is_unfrozen=True, over_ns=AT + 200 * MS)).advice is None


def test_a_short_record_has_no_limit():
    short = replace(NOTES, imports=(), is_short=True, idle_ns=AT + 99_000 * MS)
    start = made(short, turn_ms=90)
    assert (start.start, start.threshold_ns, start.is_news) == (StartKind.UNKNOWN, 0, False)
    assert start.duration_ns == 99_000 * MS
    assert made(replace(short, major_faults=50)).start is StartKind.COLD


def test_a_short_record_is_not_over_when_the_main_module_is():
    assert replace(NOTES, over_ns=AT).end_ns == AT
    assert replace(NOTES, over_ns=AT, is_short=True).end_ns is None
