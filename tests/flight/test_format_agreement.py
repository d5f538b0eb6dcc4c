"""format.py and native/core/flight/flight_format.h state the same facts: the compiler is asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from enum import IntEnum
from pathlib import Path

import pytest

from loopcanary.flight import format as layout
from loopcanary.flight import signals

LAYOUTS = [one for part in (layout, signals) for one in vars(part).values() if isinstance(one, layout.Layout)]

ENUMS = {
    layout.SectionKind: "LC_SECTION_",
    layout.TakenBy: "LC_TAKES_",
    layout.ProcessState: "LC_PROCESS_",
    layout.ClockKind: "LC_CLOCK_",
    layout.EndedKind: "LC_ENDED_",
    layout.LaneState: "LC_LANE_",
    layout.SlotState: "LC_SLOT_",
    layout.Level: "LC_LEVEL_",
    layout.Gil: "LC_GIL_",
    layout.TargetCode: "LC_TARGET_",
    layout.LockKind: "LC_LOCK_",
    layout.ProofCode: "LC_PROOF_",
}

CONSTANTS = (
    "VERSION",
    "BYTE_ORDER_MARK",
    "HEADER_BYTES",
    "FACTS_BYTES",
    "COUNTER_ROOM",
    "GC_COUNT",
    "LANE_COUNT",
    "LANE_BYTES",
    "ENDED_COUNT",
    "LONG_WORK_COUNT",
    "LONG_WORK_OFFSET",
    "LONG_NAME_BYTES",
    "LONG_TASK_BYTES",
    "NAME_BYTES",
    "HISTOGRAM_SUB_BITS",
    "HISTOGRAM_MIN_BITS",
    "HISTOGRAM_OCTAVES",
    "HISTOGRAM_BUCKETS",
    "SLOT_COUNT",
    "SLOT_BYTES",
    "SAMPLE_MAX",
    "STACK_FRAMES_MAX",
    "SLOT_THREADS_MAX",
    "SLOT_WAITERS_MAX",
    "HOST_MAX",
    "TALLY_COUNT",
    "STRING_MAX",
    "LOOK_COUNT",
    "LOOK_BYTES",
    "LOOK_OFFSET",
    "LOOK_ENTRIES_MAX",
    "KEEPER_BYTES",
    "KEEPER_ALIGNMENT",
    "KEEPER_TEXT_BYTES",
    "SAMPLE_WAITS_FOR_GIL",
    "SAMPLE_GC",
    "SAMPLE_NO_KERNEL_VIEW",
    "SAMPLE_CALLS_PYTHON",
    "SAMPLE_IN_CIRCLE",
    "HOST_PROCESS_CPU",
    "HOST_MAJOR_FAULTS",
    "HOST_SYSTEM",
    "HOST_THROTTLED",
    "HOST_PRESSURE_CPU",
    "HOST_PRESSURE_IO",
    "HOST_PRESSURE_MEMORY",
    "HOST_AVAILABLE",
    "HOST_USED",
    "HOST_PRIORITY",
    "STACK_INNER_CUT",
    "STACK_TRUNCATED",
    "NO_REF",
    "SYSCALL_RUNNING",
    "SYSCALL_UNKNOWN",
    "SLOT_HEAP_OFFSET",
)
OF_SIGNALS = ("SIGNALS_OFFSET", "SIGNALS_KEPT", "COMMAND_BYTES")
FLIGHT_CONSTANTS = {"VERSION": "LC_FLIGHT_VERSION", "BYTE_ORDER_MARK": "LC_BYTE_ORDER_MARK"}

# The last number of a field: whether it is a signed 64-bit word (none narrower is).
PROGRAM = """
#include <inttypes.h>
#include <stdio.h>
#include "core/flight/flight_format.h"
#define FIELD(s, f) printf("\\"%s.%s\\": [%zu, %zu, %d],\\n", #s, #f, offsetof(s, f), \\
    sizeof(((s *)0)->f), _Generic(((s *)0)->f, int64_t: 1, default: 0));
#define SIZE(s) printf("\\"sizeof %s\\": %zu,\\n", #s, sizeof(s));
#define NUMBER(n) printf("\\"%s\\": %" PRId64 ",\\n", #n, (int64_t)(n));
#define COUNTER(n) printf("\\"%s\\",", #n);
int main(void)
{
    printf("{");
@BODY@
    printf("\\"counters\\": [");
    LC_COUNTER_LIST(COUNTER)
    printf("null], \\"magic\\": \\"%s\\"}", LC_FLIGHT_MAGIC);
    return 0;
}
"""


def constant_name(name: str) -> str:
    return FLIGHT_CONSTANTS.get(name, "LC_" + name)


def member_name(member: IntEnum) -> str:
    return ENUMS[type(member)] + member.name


def program() -> str:
    lines = []
    for record in LAYOUTS:
        lines.append(f"SIZE({record.name})")
        lines.extend(f"FIELD({record.name}, {field})" for field in record.offsets)
    lines += [f"FIELD(lc_slot, {field})" for field in ("threads", "hosts", "contributors", "samples")]
    lines += [f"NUMBER({constant_name(name)})" for name in (*CONSTANTS, *OF_SIGNALS)]
    lines += [f"NUMBER({member_name(member)})" for enum in ENUMS for member in enum]
    lines += ["NUMBER(LC_SECTION_COUNT)", "NUMBER(LC_COUNTER_COUNT)"]
    return PROGRAM.replace("@BODY@", "\n".join(lines))


@pytest.fixture(scope="module")
def c(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the C header says, by the compiler's word."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: the header cannot be asked")
    if not (tree / "native/core/flight/flight_format.h").exists():
        pytest.skip("no C sources here: this is an installed package")
    folder = tmp_path_factory.mktemp("agreement")
    source = folder / "facts.c"
    source.write_text(program())
    include = f"-I{tree / 'native'}"
    command = [*compiler.split(), "-std=c11", include, str(source), "-o", str(folder / "facts")]
    subprocess.run(command, check=True)
    answer = subprocess.run([folder / "facts"], check=True, capture_output=True)
    return json.loads(answer.stdout)


@pytest.mark.parametrize("record", LAYOUTS, ids=lambda record: record.name)
def test_every_field_is_where_the_compiler_puts_it(c, record):
    here = {
        f"{record.name}.{field}": [offset, record.width(field), record.codes[field] == "q"]
        for field, offset in record.offsets.items()
    }

    assert here == {name: c[name] for name in here}


@pytest.mark.parametrize("record", LAYOUTS, ids=lambda record: record.name)
def test_records_have_the_compilers_size(c, record):
    whole = layout.SLOT_HEAP_OFFSET if record is layout.SLOT_FACTS else record.size

    assert whole == c[f"sizeof {record.name}"]


@pytest.mark.parametrize("record", LAYOUTS, ids=lambda record: record.name)
def test_no_field_of_the_c_structure_is_left_out(c, record):
    end = max(offset + record.width(field) for field, offset in record.offsets.items())
    covered = sum(record.width(field) for field in record.offsets)

    assert covered == end  # no gaps
    assert record.size - end < 64  # nothing behind the last but the padding of an aligned structure


def test_a_slot_is_its_facts_then_its_tables(c):
    hosts = [layout.SLOT_HOSTS_OFFSET, layout.HOST_MAX * layout.HOST.size, 0]
    contributors = [layout.SLOT_CONTRIBUTORS_OFFSET, layout.TALLY_COUNT * layout.CONTRIBUTOR.size, 0]
    threads = [layout.SLOT_THREADS_OFFSET, layout.SLOT_THREADS_MAX * layout.THREAD.size, 0]
    samples = [layout.SLOT_SAMPLES_OFFSET, layout.SAMPLE_MAX * layout.SAMPLE.size, 0]

    assert [layout.SLOT_FACTS.size, threads, hosts, contributors, samples] == [
        layout.SLOT_THREADS_OFFSET,
        c["lc_slot.threads"],
        c["lc_slot.hosts"],
        c["lc_slot.contributors"],
        c["lc_slot.samples"],
    ]


def test_numbers_agree(c):
    here = {constant_name(name): getattr(layout, name) for name in CONSTANTS}
    here |= {constant_name(name): getattr(signals, name) for name in OF_SIGNALS}

    assert here == {name: c[name] for name in here}


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.__name__)
def test_enums_agree(c, enum):
    here = {member_name(member): member.value for member in enum}

    assert here == {name: c[name] for name in here}


def test_every_enumerator_of_the_header_is_known(tree):
    header = tree / "native/core/flight/flight_format.h"
    if not header.exists():
        pytest.skip("no C sources here: this is an installed package")
    named = set(re.findall(r"\b(LC_[A-Z0-9_]+) = \d", header.read_text()))
    known = {member_name(member) for enum in ENUMS for member in enum} | set(map(constant_name, CONSTANTS))

    assert named <= known


def test_sections_and_counters_agree_in_number_and_order(c):
    assert len(layout.SectionKind) == c["LC_SECTION_COUNT"]
    assert [*layout.COUNTERS, None] == c["counters"]
    assert len(layout.COUNTERS) == c["LC_COUNTER_COUNT"]


def test_the_magic_agrees(c):
    assert layout.MAGIC.decode() == c["magic"]


def test_every_public_number_of_format_is_compared():
    numbers = {name for name in vars(layout) if name.isupper() and isinstance(getattr(layout, name), int)}

    tables = ("THREADS", "HOSTS", "CONTRIBUTORS", "SAMPLES")
    assert numbers - {f"SLOT_{table}_OFFSET" for table in tables} == set(CONSTANTS)
