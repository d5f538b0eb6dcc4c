"""The Qt probe of the portable engine: a timer of Qt's own that says how late it ran.

Qt's dispatchers have signals before and after a wait, but on Linux they run timers and events in between (Qt
6, QEventDispatcherGlib and QEventDispatcherUNIX); and in a loop of the system's own (a window that is moved
on Windows, a native dialog) there are no such signals. A timer runs in every loop, also in those of modal
dialogs, which are not stalls.
"""

from __future__ import annotations

import sys
import threading
import weakref
from contextlib import suppress
from functools import partial
from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PatchingProbe
from loopcanary.probes.qt import BINDINGS, KIND
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, ModuleType

    from loopcanary.protocols.loops import PortableSide

_RUNS = (("QtCore", "QCoreApplication"), ("QtGui", "QGuiApplication"), ("QtWidgets", "QApplication"))
_NAMES = ("exec", "exec_")
_RUNNERS_MAX = 16


class PortableQtProbe(PatchingProbe):
    """Watches the application's thread while its `exec()` runs."""

    kind = KIND
    _engine: PortableSide

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._watches = [
            ImportWatch(
                f"{binding}.{module}",
                partial(self._contain, partial(self._patch_exec, binding, module, name)),
            )
            for binding in BINDINGS
            for module, name in _RUNS
        ]
        self._timers: QtTimers | None = None
        """Of the application that runs."""

    def _take_back(self) -> None:
        super()._take_back()
        self._end(self._timers)

    def notes(self) -> tuple[str, ...]:
        return ("timed by a timer of Qt's, of the application's thread while exec() runs; no events' names",)

    def _patch_exec(self, binding: str, module: str, name: str) -> None:
        """The module has been imported."""
        owner = getattr(sys.modules[f"{binding}.{module}"], name)
        for way in _NAMES:
            core = sys.modules[f"{binding}.QtCore"]
            self._patches.put(owner, way, partial(self._around, core, owner, way))

    def _around(self, core: ModuleType, owner: type, name: str, original: Any) -> Any:
        is_method = isinstance(original, MethodDescriptorType)  # exec_ of PySide6
        plain = original if is_method else original.__get__(None, owner)

        def run(*args: Any, **names: Any) -> Any:
            timers = self._begin(core, sys._getframe())
            try:
                result = plain(*args, **names)
            finally:
                self._end(timers)
            if timers is not None:
                timers.raise_held()
            return result

        # Not functools.wraps: to ask PySide's functions for their documentation while it is being imported
        # has it print warnings.
        run.__name__, run.__qualname__ = name, f"{owner.__name__}.{name}"
        run.__module__ = owner.__module__
        return run if is_method else staticmethod(run)

    def _begin(self, core: ModuleType, runner: FrameType | None = None) -> QtTimers | None:
        """Raises nothing of ours. `runner`: the frame that does nothing else but run the loop."""
        try:
            if not self._is_on or self._timers is not None or not _is_thread_of_application(core):
                return None
            self._timers = timers = QtTimers(core, None if runner is None else id(runner))
        except ours():  # an application that cannot be watched runs
            return None
        self._engine.runs(timers, KIND)
        return timers

    def _end(self, timers: QtTimers | None) -> None:
        if timers is not None and timers is self._timers:
            self._timers = None
            self._engine.stopped(timers)

    def _patch(self) -> None:
        """An application that runs already is watched from now on, if this is its thread."""
        for binding in BINDINGS:
            core: Any = sys.modules.get(f"{binding}.QtCore")
            if not hasattr(core, "QCoreApplication") or not _is_thread_of_application(core):
                continue
            if core.QThread.currentThread().loopLevel() > 0:
                application = core.QCoreApplication.instance()
                application.aboutToQuit.connect(partial(self._end, self._begin(core)))


class QtTimers:
    """One timer of Qt's, as loops of asyncio's kind have them: protocols.PortableSide.runs. The thread that
    made it."""

    def __init__(self, core: Any, runner: int | None) -> None:
        """`runner`: id of the frame that runs the outermost loop, where it does nothing else."""
        self.runners: tuple[tuple[int, int], ...] = () if runner is None else ((runner, -1),)
        """The frames that ran a loop when the timer ran, and their instructions (-1: any), outermost first:
        what was called from there is a callback."""
        self._thread = threading.get_ident()
        self._callback: Callable[[], object] | None = None
        self._held: BaseException | None = None
        self._timer: Any = core.QTimer()
        self._timer.setSingleShot(True)
        self._timer.setTimerType(core.Qt.TimerType.PreciseTimer)
        self._runs = _runs(weakref.ref(self))
        next(self._runs)
        self._timer.timeout.connect(partial(next, self._runs, None))
        self._quit: Callable[[], object] = core.QCoreApplication.quit

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> QtTimers:
        """One call at a time; the timer itself can be cancelled."""
        self._callback = callback
        if self._timer is not None:
            self._timer.start(max(1, int(delay_s * 1000)))
        return self

    def cancel(self) -> None:
        """Ends the calls. Any thread; but Qt's timers can be stopped and freed on their own thread only: from
        another one the timer runs once more, and does nothing."""
        self._callback = None
        if threading.get_ident() == self._thread:
            timer, self._timer = self._timer, None
            with suppress(RuntimeError):  # the application has taken it along
                if timer is not None:
                    timer.stop()

    def is_closed(self) -> bool:
        """Its maker says when the loop is over."""
        return False

    def raise_held(self) -> None:
        """Raises what a signal's handler raised, if that is still to be done."""
        held, self._held = self._held, None
        if held is not None:
            raise held

    def hold(self, error: BaseException) -> None:
        """A signal's handler raised it in our code, during a run of the timer."""
        with suppress(Exception, KeyboardInterrupt):
            self._held = error
            if self._timer is not None:
                self._timer.start(1)
            if isinstance(error, KeyboardInterrupt):
                self._quit()

    def ran(self, runner: FrameType | None) -> None:
        """The timer runs, called from that frame."""
        if self._callback is not None:
            if runner is not None:
                self._ran_by((id(runner), runner.f_lasti))
            self._callback()

    def _ran_by(self, runner: tuple[int, int]) -> None:
        """Loops inside this one are over, or it is inside the known ones."""
        known = self.runners
        at = next((at for at, one in enumerate(known) if one[0] == runner[0]), len(known))
        same = known[at : at + 1] if known[at : at + 1] == ((runner[0], -1),) else (runner,)
        if known[at:] != same:
            self.runners = (*known[:at], *same)[:_RUNNERS_MAX]


def _is_thread_of_application(core: Any) -> bool:
    """Whether the calling thread is that of an application: on another thread `exec()` runs nothing."""
    application = core.QCoreApplication.instance()
    return application is not None and bool(application.thread() == core.QThread.currentThread())


def _runs(of: weakref.ref[QtTimers]) -> Iterator[None]:
    """Each `next` is a run of the timer.

    Python runs handlers of signals where Python code runs next: in an idle application, here. What a handler
    raises must not get out: PyQt aborts the process, PySide prints it and goes on. Ctrl+C ends the loop, and
    `exec()` raises it; anything else `exec()` raises at its end. SystemExit ends the program as in any slot.

    It is a generator, since that resumes inside its `try`; a function's first instruction is in none.
    """
    while True:
        try:
            while True:
                yield
                timers = of()
                if timers is not None:
                    timers.ran(sys._getframe().f_back)
                timers = None
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - see above
            timers = of()
            if timers is not None:
                timers.hold(error)
        timers = None
