"""The kinds: functions below `@deadlock`, `@leak` or `@control`, which say what is true about them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

FAMILIES = (
    "asyncio_orders",
    "asyncio_parents",
    "asyncio_leaks",
    "anyio_tasks",
    "trio_tasks",
    "task_threads",
    "threads",
    "threads_of_the_zoo",
    "ok_asyncio",
    "ok_groups",
    "ok_task_threads",
    "ok_threads",
)
OF_THREADS = {"threads", "threads_of_the_zoo", "ok_threads"}
BEGINS = "the program begins"
"""What it says on stderr when it is loaded."""

Program = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One program, and what is true about it."""

    name: str
    family: str
    summary: str
    cycle: Mapping[str, str] = field(default_factory=dict)
    """Tasks or threads, each waiting for the next, and words that are in what each waits for."""
    leaked: str = ""
    """The lock that was not released."""
    holder: str = ""
    """The task that acquired it."""
    has_ended: bool = True
    """The holder."""
    unseen: str = ""
    """Why it is documented not to be found. Such a kind is played, and not counted."""

    @property
    def is_control(self) -> bool:
        """Nothing may be reported."""
        return not self.cycle and not self.leaked

    @property
    def module(self) -> str:
        """What `python -m` is given."""
        return f"{__package__}.kinds.{self.family}"


_programs: dict[str, tuple[Scenario, Program]] = {}


def deadlock(cycle: Mapping[str, str], *, unseen: str = "") -> Callable[[Program], Program]:
    """The tasks or threads of the circle, in the order in which they wait, and for what."""
    return lambda program: _add(program, cycle=cycle, unseen=unseen)


def leak(leaked: str, *, by: str, has_ended: bool = True, unseen: str = "") -> Callable[[Program], Program]:
    """The lock, and the task that acquired it."""
    return lambda program: _add(program, leaked=leaked, holder=by, has_ended=has_ended, unseen=unseen)


def control(program: Program) -> Program:
    """Looks like a deadlock, and is none."""
    return _add(program)


def _add(program: Program, **truth: Any) -> Program:
    family = sys.argv[0] if program.__module__ == "__main__" else program.__module__.rpartition(".")[2]
    name, summary = program.__name__, (program.__doc__ or "").partition("\n")[0]
    if not summary or name in _programs:
        raise ValueError(f"{name}: has no docstring, or is there twice")
    _programs[name] = Scenario(name=name, family=family, summary=summary, **truth), program
    return program


def read_all() -> list[Scenario]:
    """Every kind, controls last."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.kinds.{family}")
    kinds = [scenario for scenario, _ in _programs.values()]
    return sorted(kinds, key=lambda kind: (kind.is_control, bool(kind.unseen)))


def asked() -> Program:
    """In a program: the one that the command line names."""
    print(BEGINS, file=sys.stderr, flush=True)
    return _programs[sys.argv[1]][1]
