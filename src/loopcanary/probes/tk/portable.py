"""The Tk probe of the portable engine: what the program's commands do, in Python.

Tcl's own waits cannot be seen from Python, and need not be: a turn is a command (`CallWrapper.__call__`),
timed from its begin to its end, and an idle window is not woken. A loop inside a command (`wait_window`, a
dialog) is no part of the command.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PatchingProbe
from loopcanary.probes.tk.commands import LOOPS, event_places, registered_by_after
from loopcanary.probes.tk.traces import TkTraces, event_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType

    from loopcanary.protocols.loops import LoopHooks
    from loopcanary.protocols.tracing import Tracers

_BY_HAND = 3
"""From this many calls of update() outside any loop on, the program turns the loop by itself
(native/probes/tk/thread.h)."""
_PARTIALS_MAX = 8


class PortableTkProbe(PatchingProbe):
    """Patches tkinter, which is imported; commands are seen that are called from then on."""

    kind = "tk"

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._hooks: LoopHooks = self._engine.LoopHooks(self.kind, self._loop_seen)
        self._watches = [ImportWatch("tkinter.commondialog", lambda: self._contain(self._patch_dialogs))]
        self._traces = TkTraces(_no_scene)
        self._here = _TclState()

    def use_tracers(self, tracers: Tracers) -> None:
        """Input and idle work are reported to `tracers`. Called before `install`."""
        self._traces.use(tracers)

    def _take_back(self) -> None:
        super()._take_back()
        self._end_by_hand()

    def notes(self) -> tuple[str, ...]:
        return ("commands are timed, each as a turn; not what Tcl and Tk do between them",)

    def _patch(self) -> None:
        tkinter, patches = sys.modules["tkinter"], self._patches
        commands = _TkCommands(tkinter, self._traces)
        patches.put(tkinter.CallWrapper, "__call__", partial(self._calling, commands))
        for name, role in LOOPS:
            patches.put(tkinter.Misc, name, self._gone if role == "gone" else partial(self._loop, role=role))
        patches.put(tkinter, "mainloop", partial(self._loop, role="run"))
        patches.put(tkinter.Tk, "destroy", self._gone)
        patches.put(tkinter.Misc, "after_idle", self._traces.after_idle(_IdleCall))

    def _patch_dialogs(self) -> None:
        dialog = sys.modules["tkinter.commondialog"].Dialog
        self._patches.put(dialog, "show", partial(self._loop, role="nested"))

    # ---- commands -------------------------------------------------------------------------------

    def _calling(self, commands: _TkCommands, original: Callable[..., Any]) -> Callable[..., Any]:
        here, hooks = self._here, self._hooks

        @wraps(original)
        def __call__(self: Any, *args: Any) -> Any:  # noqa: N807 - it becomes the type's
            here.runs_tcl = True
            command = _Command(commands, self, args)
            hooks.work_begin(command)
            here.commands += 1
            try:
                return original(self, *args)
            finally:
                here.commands -= 1
                hooks.work_end()
                command.tell_input()

        return __call__

    # ---- loops ----------------------------------------------------------------------------------

    def _loop(self, original: Callable[..., Any], *, role: str) -> Callable[..., Any]:
        here, hooks = self._here, self._hooks

        @wraps(original)
        def loop(*args: Any, **names: Any) -> Any:
            if role == "run":
                here.runs_tcl = True
            elif not here.runs_tcl:  # it only asks Tcl's thread to do it
                return original(*args, **names)
            if role == "run" and not here.commands and not here.runs:
                self._end_by_hand()
            commands, here.commands = here.commands, 0
            here.runs += 1
            hooks.run_begin()
            hooks.wait_begin()
            worked = False
            try:
                result = original(*args, **names)
                worked = True
                return result
            finally:
                hooks.run_end()
                here.runs -= 1
                here.commands = commands
                if role == "update" and not commands and not here.runs:
                    self._updated(worked=worked)

        return loop

    def _gone(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def gone(*args: Any, **names: Any) -> Any:
            try:
                return original(*args, **names)
            finally:
                self._end_by_hand()

        return gone

    def _updated(self, *, worked: bool) -> None:
        """After an update() that no loop was around: what the program does up to the next one is a turn."""
        here = self._here
        if not worked:  # the window is gone
            self._end_by_hand()
        elif here.updates < _BY_HAND:
            here.updates += 1
            if here.updates == _BY_HAND:
                self._hooks.wait_end()

    def _end_by_hand(self) -> None:
        here = self._here
        if here.updates >= _BY_HAND and not here.commands and not here.runs:
            self._hooks.wait_begin()
        here.updates = 0


class _TclState(threading.local):
    """One thread."""

    runs_tcl = False
    runs = 0
    commands = 0
    """Those that go on in the innermost loop."""
    updates = 0


class _TkCommands:
    """What is known of this tkinter's commands."""

    def __init__(self, tkinter: ModuleType, traces: TkTraces) -> None:
        self.after = registered_by_after(tkinter.Misc.after)
        self.event = event_places(tkinter.Misc._subst_format)
        self.traces = traces


class _Command:
    """One call of a command."""

    __slots__ = ("_arguments", "_begin_ns", "_commands", "_func", "_subst", "_widget")

    def __init__(self, commands: _TkCommands, wrapper: Any, arguments: tuple[Any, ...]) -> None:
        self._commands = commands
        # The class is tkinter's, or derived from it: what it has is plain.
        self._func = getattr(wrapper, "func", None)
        self._widget = getattr(wrapper, "widget", None)
        # What is no event is not kept: it is the program's.
        is_event = getattr(wrapper, "subst", None) is not None and len(arguments) == commands.event[0]
        self._arguments = arguments if is_event else ()
        self._begin_ns = time.monotonic_ns() if self._arguments else 0

    def work_names(self) -> tuple[str, None]:
        """`after: App.poll`, `.send: App.on_click`, `.field: on_press (<Button-1>)`, as the native engine has
        it (native/cpython/names/work_note.c)."""
        function = _function_of_after(self._func, self._commands.after)
        if function is not None:
            way = "after"
            if isinstance(function, _IdleCall):
                way, function = "after_idle", function.function
            return f"{way}: {_name_of(function)}", None
        name = f"{_path_of(self._widget)}: {_name_of(self._func)}"
        event = event_name(*self._kind_and_button())
        return f"{name} ({event})" if event else name, None

    def tell_input(self) -> None:
        """The command is over, and with it the handling of the user's input, if it was for that."""
        try:
            kind, button = self._kind_and_button()
            if kind:
                time_ms = _number(self._arguments[self._commands.event[2]])
                path, now_ns = _path_of(self._widget), time.monotonic_ns()
                self._commands.traces.input((path, kind, button, time_ms), self._begin_ns, now_ns)
        except Exception:  # noqa: BLE001 - the program's command has done its work
            return

    def _kind_and_button(self) -> tuple[int, int]:
        if not self._arguments:
            return 0, 0
        _, button, _, kind = self._commands.event
        return _number(self._arguments[kind]), _number(self._arguments[button])


class _IdleCall:
    """What is handed to after_idle in the function's place."""

    def __init__(self, function: Any, ran: Callable[[object, int, int], None]) -> None:
        self.function = function
        self._ran = ran
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any) -> Any:
        begin_ns = time.monotonic_ns()
        try:
            return self.function(*args)
        finally:
            self._ran(self.function, begin_ns, time.monotonic_ns())


def _no_scene() -> None:
    """Which window is in front is not looked up."""


def _function_of_after(func: Any, after: tuple[CodeType, int] | None) -> Any:
    if after is None or getattr(func, "__code__", None) is not after[0]:
        return None
    return func.__closure__[after[1]].cell_contents


def _path_of(widget: Any) -> str:
    path = getattr(widget, "_w", None)
    return path if isinstance(path, str) else "."


def _name_of(function: Any) -> str:
    for _ in range(_PARTIALS_MAX):
        if not isinstance(function, partial):
            break
        function = function.func
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _number(text: object) -> int:
    """As Tcl writes it; 0: none."""
    try:
        return int(text)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return 0
