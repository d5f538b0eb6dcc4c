"""The code that advice proposes compiles where it is to be written, in every program of the zoo.

The stalls are those of the programs' own code, marked lines and flags, with what the kernel would say.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Iterator
from types import CodeType

import pytest
from tests.diagnosis.cases import APP, STDLIB, evidence, frame, judged, samples, stack
from zoo import catalogue

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


class With(ast.NodeTransformer):
    """A tree with code at the begin of a function, which may be made a coroutine."""

    def __init__(self, function: str, line: int, code: str, *, made_async: bool) -> None:
        self.function, self.line, self.made_async = function, line, made_async
        self.code = ast.parse(f"async def _():\n {code}").body[0].body
        self.done = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.written(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.written(node)

    def written(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        if node.name != self.function or not node.lineno <= self.line <= node.end_lineno:
            return node
        self.done = True
        node.body = [*self.code, *node.body]
        if self.made_async:
            return ast.AsyncFunctionDef(**{name: getattr(node, name) for name in node._fields}, lineno=0)
        return node


def assert_compiles(source: str, function: str, line: int, code: str, *, made_async: bool = False) -> None:
    writer = With(function, line, code, made_async=made_async)
    tree = ast.fix_missing_locations(writer.visit(ast.parse(source)))
    assert writer.done, f"there is no {function} at line {line}"
    compile(tree, APP, "exec")


AWAITED = re.compile(r"`(await [^`]+)`")
IN_COROUTINE = re.compile(r"In `(\w+)` \(app\.py:(\d+)\) use `(await [^`]+)`")
IN_COROUTINE_ITSELF = re.compile(r"In `(\w+)` \(app\.py:(\d+)\), ")
MADE_ASYNC = re.compile(r"[Mm]ake `(\w+)` an `async def`")


def handed_over(code: str) -> str:
    """The function that a thread or process is to call."""
    call = ast.parse(f"async def _(): {code}").body[0].body[0].value.value
    given = next(one for one in call.args if ast.unparse(one) != "process_pool")
    return ast.unparse(given.args[0] if isinstance(given, ast.Call) else given)


def called_at(source: str, line: int) -> set[str]:
    """What a line of the program calls."""
    calls = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)]
    return {ast.unparse(one.func) for one in calls if one.lineno == line}


@pytest.mark.parametrize(("kind", "cause", "loop"), CASES)
def test_what_advice_proposes_compiles_where_it_is_to_be(kind, cause, loop):
    program = Program(kind.path.read_text())
    for place in kind.culprits:
        stall = told(program, place, cause, loop)
        advice = stall.advice
        assert advice
        assert loop in COROUTINES or "await" not in advice
        said = IN_COROUTINE.search(advice)
        if said is not None:
            function, line, code = said.groups()
            assert_compiles(program.source, function, int(line), code)
            assert handed_over(code) in called_at(program.source, int(line))
            advice = IN_COROUTINE.sub("", advice)
        itself = IN_COROUTINE_ITSELF.match(advice)
        if "start a task" in advice:
            continue  # in an `async def` that is yet to be written
        made = MADE_ASYNC.search(advice)
        for code in AWAITED.findall(advice):
            culprit = stall.culprit
            if itself is not None:
                assert_compiles(program.source, itself[1], int(itself[2]), code)
                continue
            assert made is None or made[1] == culprit.function
            assert_compiles(program.source, culprit.function, culprit.line, code, made_async=made is not None)
