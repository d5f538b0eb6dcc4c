"""Programs that make life hard for a reader of frames, and the judge of what it read.

Every function here is named and placed so that a sampled frame proves itself: generated code carries
its thread and generation in its name, file name and first line; a callee's name says who alone may
call it. A frame that mixes two code objects, or a stack that mixes two moments, breaks a rule.
"""

from __future__ import annotations

import _weakrefset
import functools
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

Frame = tuple[str, str, int, int]  # qualname, filename, line, first line

FIRST_LINE_STEP = 7
FIRST_LINE_SPAN = 5000

stopping = threading.Event()  # set: no program runs


def running() -> Iterator[int]:
    """Counts up until the test ends."""
    turn = 0
    while not stopping.is_set():
        yield turn
        turn += 1


def first_line(generation: int, depth: int) -> int:
    return 1 + generation * FIRST_LINE_STEP % FIRST_LINE_SPAN + depth * 4


# ---- code objects that are compiled, run once, and dropped --------------------------------------


def generated_source(thread: int, generation: int, depths: int) -> str:
    lines = [""] * (first_line(generation, 0) - 1)
    for depth in range(depths):
        callee = f"f{depth + 1}_{thread}_{generation}"
        lines += [
            f"def f{depth}_{thread}_{generation}(n):",
            "    n = n + 1",
            f"    n = {callee}(n) + len(str(n))" if depth + 1 < depths else "    n = sum(range(40)) + n",
            "    return n",
        ]
    lines.append(f"f0_{thread}_{generation}(1)")
    return "\n".join(lines)


def compile_and_drop(thread: int) -> None:
    for generation in running():
        text = generated_source(thread, generation, depths=2 + generation % 5)
        exec(compile(text, f"<churn {thread} {generation}>", "exec"), {})


# ---- code objects that differ in names only: same size, same addresses, at full speed -----------


def template_caller(callee: Callable[[], int]) -> int:
    return callee() + 1


def template_callee() -> int:
    return len("x" * 10)


def replace_and_drop(thread: int) -> None:
    caller, callee = template_caller.__code__, template_callee.__code__
    namespace = {"len": len}
    for generation in running():
        line = first_line(generation, 0)
        pair = [
            types.FunctionType(
                code.replace(
                    co_name=f"{kind}_{thread}_{generation}",
                    co_qualname=f"{kind}_{thread}_{generation}",
                    co_filename=f"<pair {thread} {generation}>",
                    co_firstlineno=line + 10 * (kind == "callee"),
                ),
                namespace,
            )
            for kind, code in (("caller", caller), ("callee", callee))
        ]
        for _ in range(3):
            pair[0](pair[1])


# ---- stacks that come back to where they were, with something else in between ----------------------


def only_below_left() -> int:
    return 1


def only_below_right() -> int:
    return 2


def left() -> int:
    return only_below_left()


def right() -> int:
    return only_below_right()


def back_and_forth(_thread: int) -> None:
    while not stopping.is_set():
        for _ in range(1000):
            left()
            right()


def key_below_sorts(value: int) -> int:
    return -value


def key_below_maps(value: int) -> int:
    return value + 1


def sorts() -> list[int]:
    return sorted((3, 1, 2), key=key_below_sorts)


def maps() -> list[int]:
    return list(map(key_below_maps, (3, 1, 2)))


def through_c(_thread: int) -> None:
    while not stopping.is_set():
        for _ in range(300):
            sorts()
            maps()


# ---- generators, resumed by one function and then by another -----------------------------------


def inner_generator() -> Generator[int, None, None]:
    while True:
        yield from leaf_generator()


def leaf_generator() -> Generator[int, None, None]:
    yield 1
    yield 2


def resumes_first(generator: Generator[int, None, None]) -> int:
    return next(generator)


def resumes_second(generator: Generator[int, None, None]) -> int:
    return generator.send(None)


def generators(_thread: int) -> None:
    while not stopping.is_set():
        generator = inner_generator()
        for _ in range(50):
            resumes_first(generator)
            resumes_second(generator)
            sum(only_below_generator_expression(n) for n in range(3))


def only_below_generator_expression(n: int) -> int:
    return n


@types.coroutine
def suspend() -> Generator[None, None, None]:
    yield


async def awaits(depth: int) -> int:
    if depth == 0:
        await suspend()
        return leaf_of_coroutine(0)
    return await awaits(depth - 1)


def leaf_of_coroutine(n: int) -> int:
    return n


def drive(coroutine: Any) -> None:
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def coroutines(_thread: int) -> None:
    for turn in running():
        drive(awaits(turn % 30))


# ---- deep recursion, and threads that come and go --------------------------------------------------


def recurses(depth: int) -> int:
    if depth == 0:
        return bottom_of_recursion()
    return recurses(depth - 1) + 1


def bottom_of_recursion() -> int:
    return 0


def recursion(_thread: int) -> None:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
    for turn in running():
        recurses(turn * 37 % 900)


def short_lived() -> int:
    return functools.reduce(adds_below_short_lived, range(20))


def adds_below_short_lived(a: int, b: int) -> int:
    return a + b


def threads(_thread: int) -> None:
    while not stopping.is_set():
        thread = threading.Thread(target=short_lived)
        thread.start()
        thread.join()


PROGRAMS = (
    compile_and_drop,
    replace_and_drop,
    back_and_forth,
    through_c,
    generators,
    coroutines,
    recursion,
    threads,
)

# ---- the same, as pieces of work that a watchdog sees -------------------------------------------------


def in_rounds(program: Callable[[int], None], number: int, gate: threading.Barrier, watch: Any) -> None:
    """Runs the program again and again, each time as one piece of watched work, until the gate breaks."""
    try:
        while True:
            gate.wait()
            with watch(program.__name__):
                program(number)
            gate.wait()
    except threading.BrokenBarrierError:
        return


def run_watched(watch: Any, seconds: float, round_s: float) -> int:
    """All programs side by side, in rounds; how many rounds there were."""
    gate = threading.Barrier(len(PROGRAMS) + 1)
    workers = [
        threading.Thread(target=in_rounds, args=(program, number, gate, watch))
        for number, program in enumerate(PROGRAMS)
    ]
    for worker in workers:
        worker.start()
    rounds, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        stopping.clear()
        gate.wait()
        time.sleep(round_s)
        stopping.set()
        gate.wait()
        rounds += 1
    gate.abort()
    for worker in workers:
        worker.join()
    return rounds


# ---- the judge -------------------------------------------------------------------------------------

GENERATED = re.compile(r"<churn (\d+) (\d+)>")
GENERATED_NAME = re.compile(r"f(\d+)_(\d+)_(\d+)")
PAIR = re.compile(r"<pair (\d+) (\d+)>")
PAIR_NAME = re.compile(r"(caller|callee)_(\d+)_(\d+)")

# callee: the only functions that may be right outside of it
CALLERS = {
    "only_below_left": {"left"},
    "only_below_right": {"right"},
    "left": {"back_and_forth"},
    "right": {"back_and_forth"},
    "key_below_sorts": {"sorts"},
    "key_below_maps": {"maps"},
    "sorts": {"through_c"},
    "maps": {"through_c"},
    # When `generators` drops them, they are closed: in its caller, where its frame is cleared.
    "leaf_generator": {"inner_generator", "generators", "in_rounds"},
    "inner_generator": {"resumes_first", "resumes_second", "generators", "in_rounds"},
    "resumes_first": {"generators"},
    "resumes_second": {"generators"},
    "generators.<locals>.<genexpr>": {"generators"},
    "only_below_generator_expression": {"generators.<locals>.<genexpr>"},
    "leaf_of_coroutine": {"awaits"},
    "suspend": {"awaits"},
    "awaits": {"awaits", "drive"},
    "drive": {"coroutines"},
    "bottom_of_recursion": {"recurses"},
    "recurses": {"recurses", "recursion"},
    "adds_below_short_lived": {"short_lived"},
    "short_lived": {"Thread.run"},
    "in_rounds": {"Thread.run"},
    **{program.__name__: {"Thread.run", "in_rounds"} for program in PROGRAMS},
}


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


class Judge:
    """Says what is wrong with a sampled stack, innermost frame first; None if nothing is."""

    def __init__(self, *more_modules: types.ModuleType) -> None:
        """`more_modules`: whose functions may be called by the programs here, too."""
        self._lines: dict[tuple[str, str, int], set[int]] = {}
        for module in (sys.modules[__name__], threading, _weakrefset, *more_modules):
            assert module.__file__ is not None
            source = Path(module.__file__).read_text(encoding="utf-8")
            compiled = compile(source, module.__file__, "exec")
            for code in code_objects(compiled):
                key = (code.co_qualname, module.__file__, code.co_firstlineno)
                # Instructions that belong to no line (jumps the compiler made up) have line 0.
                lines = {line or 0 for _, _, line in code.co_lines()}
                self._lines.setdefault(key, set()).update(lines)

    def fault(self, sample: tuple[list[Frame], bool]) -> str | None:
        stack, truncated = sample
        for inner, outer in zip(stack, [*stack[1:], None], strict=True):
            fault = self._frame_fault(inner) or self._call_fault(inner, outer)
            if fault is not None:
                return fault
        if not truncated and stack[-1][0] != "Thread._bootstrap":
            return f"does not start where threads do: {stack}"
        return None

    def _frame_fault(self, frame: Frame) -> str | None:
        qualname, filename, line, first = frame
        if generated := GENERATED.fullmatch(filename):
            if qualname == "<module>":
                return None
            name = GENERATED_NAME.fullmatch(qualname)
            if name is None or name[2] != generated[1] or name[3] != generated[2]:
                return f"name and file name of different code: {frame}"
            if first != first_line(int(name[3]), int(name[1])) or not first <= line <= first + 3:
                return f"line of different code: {frame}"
            return None
        if pair := PAIR.fullmatch(filename):
            name = PAIR_NAME.fullmatch(qualname)
            if name is None or name[2] != pair[1] or name[3] != pair[2]:
                return f"name and file name of different code: {frame}"
            expected = first_line(int(pair[2]), 0) + 10 * (name[1] == "callee")
            if first != expected or not first <= line <= first + 1:
                return f"line of different code: {frame}"
            return None
        lines = self._lines.get((qualname, filename, first))
        if lines is None:
            return f"no such function: {frame}"
        if line not in lines:
            return f"no such line: {frame}"
        return None

    def _call_fault(self, inner: Frame, outer: Frame | None) -> str | None:
        caller = None if outer is None else outer[0]
        if name := GENERATED_NAME.fullmatch(inner[0]):
            depth, thread, generation = name.groups()
            expected = {f"f{int(depth) - 1}_{thread}_{generation}"} if int(depth) else {"<module>"}
            if outer is None or outer[1] != inner[1]:
                return f"called from other code: {inner} by {outer}"
        elif (name := PAIR_NAME.fullmatch(inner[0])) and name[1] == "callee":
            expected = {f"caller_{name[2]}_{name[3]}"}
        elif PAIR_NAME.fullmatch(inner[0]):
            expected = {"replace_and_drop"}
        elif inner[1] == __file__ and inner[0] in CALLERS:
            expected = CALLERS[inner[0]]
        else:
            return None
        if outer is None:
            return None  # cut
        return None if caller in expected else f"{inner} called by {outer}"


# ---- the run -----------------------------------------------------------------------------------------


class Outcome:
    """What came of sampling: figures by name, and the faults that were found."""

    def __init__(self) -> None:
        self.figures: dict[str, int] = {}
        self.faults: list[str] = []

    def add(self, figures: dict[str, int]) -> None:
        for name, value in figures.items():
            known = self.figures.get(name, 0)
            self.figures[name] = max(known, value) if name.endswith("_max") else known + value


def sample(
    probe: Any, programs: tuple[Callable[[int], None], ...], seconds: float, every_us: int, outcome: Outcome
) -> None:
    """Runs the programs, each on its thread, samples all threads, and judges every new stack."""
    judge = Judge()
    stopping.clear()
    workers = [
        threading.Thread(target=program, args=(number,), daemon=True)
        for number, program in enumerate(programs)
    ]
    for worker in workers:
        worker.start()
    judged = 0
    before = probe.counts()
    probe.start(every_us)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.02)
            stacks = probe.take()
            judged += len(stacks)
            outcome.faults += filter(None, map(judge.fault, stacks))
    finally:
        outcome.add(probe.stop())
        stopping.set()
        for worker in workers:
            worker.join()
        probe.take()
    outcome.add({"judged": judged})
    outcome.add({name: value - before[name] for name, value in probe.counts().items()})


def run(probe: Any, seconds: float) -> Outcome:
    """Half of the time all programs at once, half of it each one by itself, at full speed."""
    outcome = Outcome()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        sample(probe, PROGRAMS, seconds / 2, 1000, outcome)
        for program in PROGRAMS:
            sample(probe, (program,), seconds / 2 / len(PROGRAMS), 200, outcome)
    finally:
        sys.setswitchinterval(interval)
    return outcome
