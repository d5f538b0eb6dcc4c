"""The trio probe: each run's group of instruments also reports to us, in C (native/probes/trio/run.c).

A run makes its group by the name `Instruments` of trio._core._run, however trio is run: `trio.run`,
`anyio.run`, pytest-trio. Instruments that the program adds are called as ever.
"""

from __future__ import annotations

import sys
from itertools import islice

from loopcanary.probes import PatchingProbe
from loopcanary.thread_frames import thread_frames
from loopcanary.whose_exception import ours

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType, ModuleType
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.probes.asyncio import SpinWatch
    from loopcanary.protocols.tracing import Tracers

KIND = "trio"
MODULE = "trio._core._run"
_EXAMINED_MAX = 32
NEEDED = ("Instruments", "GLOBAL_RUN_CONTEXT", "Task", "run")
TOO_OLD = "this trio cannot be watched: it is older than 0.19, or made in another way"


class TrioProbe(PatchingProbe):
    """Watches all runs of trio, in any thread; also guest runs, and those that run already."""

    kind = KIND
    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._waits = 0
        self._waits_are_hooked = False
        self._tracers: Callable[[], Tracers] | None = None

    def use_tracers_when_needed(self, tracers: Callable[[], Tracers]) -> None:
        """Makes the trace of a run that never waits; most programs need none."""
        self._tracers = tracers

    def _patch(self) -> None:
        """Puts our group of instruments into every run of trio, also into those that run already."""
        run: Any = sys.modules[MODULE]
        if not all(hasattr(run, name) for name in NEEDED):
            self._notes.append(TOO_OLD)
            return
        self._learn()
        self._hook_waits()
        self._patches.put(run, "Instruments", self._make_group)
        for runner in running(run):
            self._join(runner, run.Instruments)

    def _take_back(self) -> None:
        """Leaves our group in the runs until they end, since trio may be about to call it. It reports
        nothing."""
        super()._take_back()
        if self._waits_are_hooked:
            self._engine.unhook_waits(self._waits)
            self._waits_are_hooked = False

    def _learn(self) -> None:
        self._engine.learn_trio(sys.modules[MODULE].Task)

    def _hook_waits(self) -> None:
        epoll = getattr(sys.modules.get("select"), "epoll", None)
        self._waits = 0 if epoll is None else self._engine.c_code(epoll.poll)
        self._waits_are_hooked = bool(self._waits) and "epoll_wait" in self._engine.hook_waits(self._waits)

    def _spin_watch(self) -> Callable[[int], None]:
        return self._spins().look

    def _spins(self) -> SpinWatch:
        from loopcanary.probes.asyncio import SpinWatch

        return SpinWatch((), self._tell_spin, identities=_ready_tasks)

    def _tell_spin(self, name: str, begin_ns: int, end_ns: int, turns: int) -> None:
        if self._tracers is not None:
            self._tracers().idle(KIND).spun(name, begin_ns, end_ns, turns)

    def _make_group(self, original: Any) -> Any:
        probe = self

        def __init__(self: Any, incoming: Sequence[Any]) -> None:  # noqa: N807 - it becomes the type's
            original.__init__(self, incoming)
            probe._adopt(self)

        return group_like(original, __init__, self._engine.TrioGroup, _call_others=original.call)

    def _adopt(self, group: Any) -> None:
        """Before a run. What it raises is the program's own, such as SystemExit from a signal's handler."""
        try:
            self._loop_seen()
            group.tells_waits = not self._waits_are_hooked
            group.spins = self._spin_watch()
            group.open_lane(lambda begun: self._contain(lambda: _note_guest(begun)))
            self._learn()  # until now the engine may have been armed only
        except ours():  # a run that cannot be watched runs
            return

    def _join(self, runner: Any, groups: Any) -> None:
        """Replaces the group of a run that runs already by ours, with the same instruments. Any thread: trio
        looks its group up each time, and both groups know the instruments."""
        if isinstance(runner.instruments, self._engine.TrioGroup):
            return
        group = groups.__new__(groups)
        group.data = runner.instruments.data
        group.is_guest = runner.is_guest
        group.tells_waits = not self._waits_are_hooked and not runner.is_guest
        group.spins = self._spin_watch()
        runner.instruments = group


def _ready_tasks(_: object) -> Iterator[tuple[int, str]]:
    """Number and name of each task that the calling thread's run has ready."""
    ready = sys.modules[MODULE].GLOBAL_RUN_CONTEXT.runner.runq
    for task in islice(ready, _EXAMINED_MAX):
        coroutine = task.coro
        name = getattr(coroutine, "__qualname__", None) or type(coroutine).__qualname__
        yield id(task), f"{name} (task)"


def _note_guest(group: Any) -> None:
    """Only when the run begins is it known whether it is a guest's."""
    runner = sys.modules[MODULE].GLOBAL_RUN_CONTEXT.runner
    group.is_guest = runner.is_guest
    group.tells_waits = group.tells_waits and not runner.is_guest


def group_like(original: Any, init: Callable[..., None], *before: type, **names: object) -> Any:
    """A group that goes by the original's name, and is one; `before`: the types that come before it."""
    copied = {name: getattr(original, name) for name in ("__module__", "__qualname__", "__doc__")}
    members = {"__init__": init, "__slots__": (), **copied, **names}
    return type(original)(original.__name__, (*before, original), members)


def running(run: ModuleType) -> Iterator[Any]:
    """The runners of this thread and of others, as far as they can be found: a guest run of another thread
    has no frame while it waits."""
    own = getattr(run.GLOBAL_RUN_CONTEXT, "runner", None)
    if own is not None:
        yield own
    code = getattr(run.run, "__code__", None)
    frame: FrameType | None
    for frame in list(thread_frames().values()):
        while frame is not None:
            if frame.f_code is code and "runner" in frame.f_locals and frame.f_locals["runner"] is not own:
                yield frame.f_locals["runner"]
            frame = frame.f_back  # noqa: PLW2901 - none stays bound: this generator's is among them
