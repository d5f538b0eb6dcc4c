"""The trio probe of the portable engine: an instrument in the documented way (trio.abc.Instrument), in every
group that a run makes (see `trio`).
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.probes import PatchingProbe
from loopcanary.probes.trio import KIND, MODULE, NEEDED, TOO_OLD, group_like, running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopcanary.protocols.loops import LoopHooks


class PortableTrioProbe(PatchingProbe):
    """Watches all runs of trio, in any thread; also guest runs, and those that run already."""

    kind = KIND

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._hooks: LoopHooks = self._engine.LoopHooks(KIND, self._loop_seen)

    def _patch(self) -> None:
        """Runs have our instrument from now on. After `uninstall` it stays in them to their end, and reports
        nothing."""
        run: Any = sys.modules[MODULE]
        if not all(hasattr(run, name) for name in NEEDED):
            self._notes.append(TOO_OLD)
            return
        self._patches.put(run, "Instruments", self._make_group)
        own = getattr(run.GLOBAL_RUN_CONTEXT, "runner", None)
        for runner in running(run):
            self._contain(partial(self._join, runner, is_own=runner is own))

    def _make_group(self, original: Any) -> Any:
        hooks = self._hooks

        def __init__(self: Any, incoming: Sequence[Any]) -> None:  # noqa: N807 - it becomes the type's
            original.__init__(self, (TurnInstrument(hooks), *incoming))

        return group_like(original, __init__)

    def _join(self, runner: Any, *, is_own: bool) -> None:
        """Joins a run that runs already."""
        instrument = TurnInstrument(self._hooks)
        if is_own:
            instrument.join(runner)
        else:
            runner.entry_queue.run_sync_soon(instrument.join, runner)


class TurnInstrument:
    """The instrument of one run. trio switches an instrument off that raises: the hooks raise nothing.

    A guest run has no wait and no turn: its steps run inside a callback of its host's.
    """

    def __init__(self, hooks: LoopHooks) -> None:
        self._hooks = hooks
        self._is_host = False
        self._is_in_step = False

    def join(self, runner: Any) -> None:
        """The run goes on already. Its thread."""
        runner.instruments.add_instrument(self)
        self._begin(runner)

    def before_run(self) -> None:
        self._begin(getattr(sys.modules[MODULE].GLOBAL_RUN_CONTEXT, "runner", None))

    def after_run(self) -> None:
        if self._is_host:
            self._is_host = False
            self._hooks.run_end()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - as trio calls it
        if self._is_host:
            self._hooks.wait_begin()

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - as trio calls it
        if self._is_host:
            self._hooks.wait_end()

    def before_task_step(self, task: Any) -> None:
        self._is_in_step = True
        self._hooks.work_begin(_Step(task))

    def after_task_step(self, task: Any) -> None:  # noqa: ARG002 - as trio calls it
        """A step has ended. The first one to end may have begun before we came."""
        if self._is_in_step:
            self._is_in_step = False
            self._hooks.work_end()

    def _begin(self, runner: Any) -> None:
        self._is_host = not getattr(runner, "is_guest", False)
        if self._is_host:
            self._hooks.run_begin()


class _Step:
    """What a task is called."""

    __slots__ = ("_task",)

    def __init__(self, task: Any) -> None:
        self._task = task

    def work_context(self) -> object:
        """Where the scene is looked up that the task is in."""
        return self._task.context

    def work_names(self) -> tuple[str, str]:
        """The names of the task's coroutine, and of the task."""
        coroutine = self._task.coro
        return getattr(coroutine, "__qualname__", None) or type(coroutine).__qualname__, str(self._task.name)
