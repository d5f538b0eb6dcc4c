"""The code that advice proposes compiles where it is to be written, in every program of the zoo.

The stalls are those of the programs' own code, marked lines and flags, with what the kernel would say.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from types import CodeType

import pytest
from tests.diagnosis.cases import APP, STDLIB, evidence, frame, judged, samples, stack
from zoo import catalogue
from zoo.advice import objection

from loopcanary.model import Frame, GilState

KERNEL = {
    "sleep": {"syscall": "clock_nanosleep"},
    "lock": {"syscall": "futex"},
    "disk-io": {"syscall": "fsync"},
    "network-io": {"syscall": "recvfrom"},
    "dns": {"syscall": "poll"},
    "subprocess": {"syscall": "wait4"},
    "native-cpu": {"running": True, "gil": GilState.SELF},
    "cpu": {"running": True, "gil": GilState.SELF},
    "gil": {"syscall": "futex", "waits_for_gil": True, "gil": GilState.OTHER},
    "gc": {"running": True, "in_gc": True},
    "import": {"running": True, "gil": GilState.SELF},
    "burst": {"running": True, "gil": GilState.SELF},
    "host": {"running": True, "queued": 1.0},
}
BELOW = {
    "dns": ("getaddrinfo", f"{STDLIB}/socket.py"),
    "import": ("_find_and_load", "<frozen importlib._bootstrap>"),
    "cpu": ("step", f"{STDLIB}/heapq.py"),
}
COROUTINES = ("asyncio", "trio")
LOOPS = (*COROUTINES, "tk")
KINDS = [kind for kind in catalogue.read_all() if kind.culprits and not kind.control]
CASES = [
    pytest.param(kind, cause, loop, id=f"{kind.name}-{cause}-{loop}")
    for kind in KINDS
    for cause in kind.causes
    for loop in kind.loops
    if loop in LOOPS
]


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


class Program:
    """One of the zoo's, compiled and never run."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.codes = [code for code in codes_of(compile(source, APP, "exec")) if code.co_flags & 1]

    def stack(self, place: catalogue.Place) -> list[Frame]:
        """The frames from a marked line out to the function that the loop calls."""
        found = [self.at_line(code, line) for code in self.codes for line in sorted(place.lines)]
        frames = [next(one for one in found if one is not None and one.function == place.function)]
        while (caller := self.caller(frames[-1].function)) is not None and caller.qualname not in {
            one.qualname for one in frames
        }:
            frames.append(caller)
        return frames

    def at_line(self, code: CodeType, line: int) -> Frame | None:
        """A frame at the last call of a line, else at anything there."""
        there = [
            one
            for one in dis.get_instructions(code)
            if one.positions.lineno == line and one.positions.col_offset is not None
        ]
        calls = [one for one in there if one.opname.startswith("CALL")]
        return self.frame(code, (calls or there)[-1]) if there else None

    def caller(self, name: str) -> Frame | None:
        for code in self.codes:
            for one in dis.get_instructions(code):
                placed = one.opname.startswith("CALL") and one.positions.col_offset is not None
                frame = self.frame(code, one) if placed else None
                if frame is not None and re.match(rf"(?:[\w.]+\.)?{name}\(", self.text(frame)):
                    return frame
        return None

    def frame(self, code: CodeType, at: dis.Instruction) -> Frame:
        line, end_line, column, end_column = at.positions
        return frame(
            code.co_qualname,
            APP,
            line,
            end_line=end_line,
            column=column + 1,
            end_column=end_column + 1,
            first_line=code.co_firstlineno,
            code_flags=code.co_flags,
        )

    def text(self, frame: Frame) -> str:
        line = self.source.split("\n")[frame.line - 1]
        return line[frame.column - 1 :]


def told(program: Program, place: catalogue.Place, cause: str, loop: str):
    frames, below = program.stack(place), BELOW.get(cause)
    inner = [] if below is None else [frame(*below)]
    moving = cause == "cpu"
    stacks = [
        stack(*[frame(one.qualname, one.file, 1 + index * moving) for one in inner], *frames)
        for index in range(12)
    ]
    return judged(evidence(samples(*stacks, **KERNEL[cause]), loop_kind=loop), program.source)


@pytest.mark.parametrize(("kind", "cause", "loop"), CASES)
def test_what_advice_proposes_compiles_where_it_is_to_be(kind, cause, loop):
    program = Program(kind.path.read_text())
    for place in kind.culprits:
        stall = told(program, place, cause, loop)
        advice = stall.advice
        assert advice
        assert loop in COROUTINES or "await" not in advice
        culprit = stall.culprit
        file = APP.rpartition("/")[2]
        assert objection(advice, program.source, file, culprit.function, culprit.line) is None
