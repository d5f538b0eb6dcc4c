"""The Tk probe: the program's commands (`CallWrapper.__call__`), and the loops that it runs.

The portable engine sees no more: a turn is a command, timed from its begin to its end, and an idle window is
not woken. With the native engine `probe.TkProbe` adds what Tcl and Tk do between commands. A loop
inside a command (`wait_window`, a dialog) is not a part of the command.
"""

from __future__ import annotations

import sys
import threading
import time
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PatchingProbe
from loopcanary.probes.event_stamps import EventStamps
from loopcanary.whose_exception import ours

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, FrameType, ModuleType

    from loopcanary.protocols.loops import LoopHooks
    from loopcanary.protocols.tracing import InputTrace, Tracers


_EVENTS = {
    2: "<Key>",
    3: "<KeyRelease>",
    4: "<Button>",
    5: "<ButtonRelease>",
    6: "<Motion>",
    38: "<MouseWheel>",
}
_BUTTONS = (4, 5)


def event_name(kind: int, button: int) -> str:
    """The name of an event as bindings write it; empty: it is not input."""
    name = _EVENTS.get(kind, "")
    return name if not button or kind not in _BUTTONS else f"{name[:-1]}-{button}>"


class TkTraces:
    """Hands on what commands were for; nothing is raised."""

    def __init__(self, scene: Callable[[], str | None]) -> None:
        """`scene`: of the calling thread's window in front."""
        self._scene = scene
        self._tracers: Tracers | None = None
        self._input: InputTrace | None = None
        self._idle: Any = None
        self._stamps = EventStamps()

    def use(self, tracers: Tracers) -> None:
        """Input and idle work are reported to them from now on."""
        self._tracers = tracers

    def input(self, path: str, event: tuple[int, int, int], begin_ns: int, end_ns: int) -> None:
        """A command of the widget with this path has handled a user's event. `event`: X's type, button, and
        the event's own time in ms, 0 for an event that the program made."""
        kind, button, time_ms = event
        if self._tracers is None or time_ms == 0 or kind not in _EVENTS:
            return
        if self._input is None:
            self._input = self._tracers.input("tk")
        name = event_name(kind, button)
        arrived_ns = self._stamps.arrived_ns(time_ms, begin_ns)
        self._input.handled(f"{path}: {name}", arrived_ns, begin_ns, end_ns, self._scene())

    def ran(self, function: object, begin_ns: int, end_ns: int) -> None:
        """An idle handler has run."""
        if self._tracers is None:
            return
        if self._idle is None:
            from loopcanary.probes.idle_runs import IdleRuns  # few programs have idle functions

            self._idle = IdleRuns(self._tracers.idle("tk"))
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self._idle.ran(f"after_idle: {name}", begin_ns, end_ns)


_LOOPS = (
    # Of tkinter.Misc: what runs Tcl's loop, and as what.
    ("mainloop", "run"),
    ("update", "update"),
    ("wait_window", "nested"),
    ("wait_variable", "nested"),
    ("waitvar", "nested"),
    ("wait_visibility", "nested"),
)
_PARTIALS_MAX = 8
_NAMES_MAX = 1024


class PortableTkProbe(PatchingProbe):
    """Patches tkinter, which is imported; commands are seen that are registered from then on."""

    kind = "tk"
    _sees_waits = False
    """Tcl tells when it waits: it ends the turns."""

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._hooks: LoopHooks = self._engine.LoopHooks(self.kind, self._loop_seen)
        self._watches = [ImportWatch("tkinter.commondialog", lambda: self._contain(self._patch_dialogs))]
        self._traces = TkTraces(self._scene)
        self._here = _TclState()

    def use_tracers(self, tracers: Tracers) -> None:
        """Input and idle work are reported to `tracers`. Called before `install`."""
        self._traces.use(tracers)

    def _take_back(self) -> None:
        super()._take_back()
        self._polled_over()
        self._release()

    def notes(self) -> Sequence[str]:
        return (
            "commands are timed, each as a turn; not what Tcl and Tk do between them",
            "input is seen where a binding of the program's handles it, not a click on a button",
        )

    def _patch(self) -> None:
        tkinter, patches = sys.modules["tkinter"], self._patches
        commands = _TkCommands(tkinter, self._traces, self._served)
        patches.put(tkinter.CallWrapper, "__call__", partial(self._calling, commands))
        for name, role in _LOOPS:
            patches.put(tkinter.Misc, name, partial(self._loop, role=role))
        patches.put(tkinter, "mainloop", partial(self._loop, role="run"))
        patches.put(tkinter.Misc, "quit", partial(self._gone, role="quit"))
        patches.put(tkinter.Tk, "destroy", partial(self._gone, role="root"))
        patches.put(tkinter.BaseWidget, "destroy", partial(self._gone, role="window"))
        for name in ("withdraw", "wm_withdraw"):
            patches.put(tkinter.Wm, name, partial(self._gone, role="window"))
        patches.put(tkinter.Misc, "after_idle", _after_idle)

    def _patch_dialogs(self) -> None:
        dialog = sys.modules["tkinter.commondialog"].Dialog
        self._patches.put(dialog, "show", partial(self._loop, role="nested"))

    # ---- what the native engine adds -------------------------------------------------------------

    def _shown(self, in_command: bool) -> Any:  # noqa: ARG002 - the native engine's has it
        """A thread is about to run Tcl's loop or a command. Answers what `_entered` has to know, or None."""
        self._here.runs_tcl = True

    def _entered(self, widget: Any, shown: Any) -> None:
        """What has been shown meanwhile."""

    def _enter(self, widget: Any) -> None:
        shown = self._shown(False)
        if shown is not None:
            self._entered(widget, shown)

    def _updated(self, widget: Any) -> None:
        """What there was to draw is drawn."""

    def _served(self) -> tuple[int, int, int] | None:
        """The user's event that is served: X's type, button, time in ms."""
        return None

    def _scene(self) -> str | None:
        """The scene of the window in front."""
        return None

    # ---- commands -------------------------------------------------------------------------------

    def _calling(self, commands: _TkCommands, original: Callable[..., Any]) -> Callable[..., Any]:
        shown_now, entered, described = self._shown, self._entered, commands.described
        work_begin, work_end = self._hooks.work_begin, self._hooks.work_end

        @wraps(original)
        def __call__(self: Any, *args: Any) -> Any:  # noqa: N807 - it becomes the type's
            shown = shown_now(True)
            if shown is not None:
                entered(getattr(self, "widget", None), shown)
            name, tell = described(self, args)
            begin_ns = time.monotonic_ns() if tell is not None else 0
            work_begin(name)
            try:
                return original(self, *args)
            finally:
                work_end()
                if tell is not None:
                    _tell(tell, begin_ns)

        return __call__

    # ---- loops ----------------------------------------------------------------------------------

    def _loop(self, original: Callable[..., Any], *, role: str) -> Callable[..., Any]:
        here, hooks = self._here, self._hooks

        @wraps(original)
        def loop(*args: Any, **names: Any) -> Any:
            if role != "run" and not here.runs_tcl:  # it only asks Tcl's thread to do it
                return original(*args, **names)
            widget = args[0] if args else None
            self._enter(widget)
            is_polled = here.polled is not None and here.polled.is_open
            here.runs += 1
            in_turn = hooks.run_begin()
            if not self._sees_waits:
                hooks.wait_begin()
            worked = False
            try:
                result = original(*args, **names)
                worked = True
                return result
            finally:
                hooks.run_end()
                here.runs -= 1
                if not here.runs and (is_polled or not in_turn):
                    self._pumped(here, role, worked=worked)
                    if is_polled and not here.polled.is_open:
                        hooks.wait_begin()  # it went meanwhile, and the run's end has begun it anew
                if role == "update":
                    self._updated(widget)

        return loop

    def _gone(self, original: Callable[..., Any], *, role: str) -> Callable[..., Any]:
        """A window goes, or the loop is about to end: what was adopted is not a loop any more, and whether
        the program turns the loop by hand has to show anew. quit() in a loop only ends one look at it."""
        here, windows = self._here, sys.modules["tkinter"].Wm

        @wraps(original)
        def gone(*args: Any, **names: Any) -> Any:
            try:
                return original(*args, **names)
            finally:
                if role == "window":
                    if args and isinstance(args[0], windows):
                        self._polled_over()
                else:
                    if role == "root" or not here.runs:
                        self._polled_over()
                    self._release()

        return gone

    def _pumped(self, here: _TclState, role: str, *, worked: bool) -> None:
        """After an update() or mainloop() that no loop was around. A dialog says nothing."""
        if not worked:
            self._polled_over()
        elif role != "nested":
            if here.polled is None:
                from loopcanary.probes.polled import Polled

                here.polled = Polled(self._hooks)
            here.polled.pumped(sys._getframe(2))

    def _polled_over(self) -> None:
        here = self._here
        if here.polled is not None:
            here.polled.over(ends_turn=not here.runs)

    def _adopt(self) -> None:
        """Sees the waits of a mainloop() that was not patched when it began."""
        if self._is_on and self._sees_waits and self._is_in_mainloop():
            self._here.is_adopted = True
            self._hooks.run_begin()

    def _is_in_mainloop(self) -> bool:
        return _runs_on_this_thread(_mainloops(sys.modules["tkinter"]))

    def _release(self) -> None:
        if self._here.is_adopted:
            self._here.is_adopted = False
            self._hooks.run_end()


class _TclState(threading.local):
    """One thread."""

    runs_tcl = False
    """It has run a command or mainloop(): Tcl's loop is this thread's."""
    runs = 0
    """Loops that go on, one inside the other."""
    polled: Any = None
    """Of probes.polled, once the thread has turned a loop outside of any."""
    is_adopted = False


class _TkCommands:
    """What is known of this tkinter's commands."""

    def __init__(
        self, tkinter: ModuleType, traces: TkTraces, served: Callable[[], tuple[int, int, int] | None]
    ) -> None:
        self._tkinter = tkinter
        self._traces = traces
        self._after, self._after_cell = _registered_by_after(tkinter.Misc.after)
        self._event = _event_places(tkinter.Misc._subst_format)
        self._served = served
        self._names: dict[str, str] = {}
        self._after_names: dict[object, str] = {}
        """By the functions' own names, for those that run often."""

    def described(
        self, wrapper: Any, arguments: tuple[Any, ...]
    ) -> tuple[str, Callable[[int, int], None] | None]:
        """The name of a command, and the trace that hears of its begin and end: `after: App.poll`,
        `.send: App.on_click`, `.field: on_press (<Button-1>)`."""
        try:
            # The class is tkinter's, or derived from it: what it has is plain.
            func: Any = getattr(wrapper, "func", None)
            if getattr(func, "__code__", self) is self._after:
                function = func.__closure__[self._after_cell].cell_contents
                known = self._after_names.get(getattr(function, "__qualname__", None))
                return self._after_described(function) if known is None else (known, None)
            path = _path_of(getattr(wrapper, "widget", None))
            name = f"{path}: {_name_of(func)}"
            event = self._event_of(wrapper, arguments)
            if event is not None:
                name += self._event_text(event)
            else:
                event = self._served()
            tell = None if event is None else partial(self._traces.input, path, event)
            return self._one_str(name), tell
        except ours():  # the program's command has to run
            return "?", None

    def _after_described(self, function: Any) -> tuple[str, Callable[[int, int], None] | None]:
        if isinstance(function, _Idle):
            name = f"after_idle: {_name_of(function.func)}"
            return self._one_str(name), partial(self._traces.ran, function.func)
        name = self._one_str(f"after: {_name_of(function)}")
        qualname = getattr(function, "__qualname__", None)
        if isinstance(qualname, str):
            self._after_names[qualname] = name
        return name, None

    def _one_str(self, name: str) -> str:
        """The same str for the same name: a turn's callbacks are told apart by it."""
        if len(self._names) >= _NAMES_MAX:
            self._names.clear()
            self._after_names.clear()
        return self._names.setdefault(name, name)

    def _event_of(self, wrapper: Any, arguments: tuple[Any, ...]) -> tuple[int, int, int] | None:
        """X's type, button, and time in ms, of a binding's event."""
        count, *places = self._event
        if getattr(wrapper, "subst", None) is None or len(arguments) != count:
            return None
        kind, button, time_ms = (_number(arguments[place]) for place in places)
        return kind, button, time_ms

    def _event_text(self, event: tuple[int, int, int]) -> str:
        kind, button, _ = event
        text = event_name(kind, button)
        if not text and kind:
            name = self._tkinter.EventType(str(kind)).name
            text = "<<virtual event>>" if name == "VirtualEvent" else f"<{name}>"
        return text and f" ({text})"


def _tell(tell: Callable[[int, int], None], begin_ns: int) -> None:
    try:
        tell(begin_ns, time.monotonic_ns())
    except ours():  # the program's command has done its work
        return


class _Idle(partial[Any]):
    """What is handed to after_idle in the function's place. Its call has no frame of Python's."""


def _after_idle(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def after_idle(self: Any, func: Any, *args: Any) -> Any:
        if callable(func):
            name = getattr(func, "__name__", type(func).__name__)
            func = _Idle(func)
            func.__name__ = name  # Misc.after asks for it
        return original(self, func, *args)

    return after_idle


def _event_places(told: Sequence[str]) -> tuple[int, int, int, int]:
    """The number of values that Tcl gives of an event (Misc._subst_format; 3.15 gives more than 3.14), and
    the places of type, button and time among them. All 0 if one of these is missing."""
    if not {"%b", "%t", "%T"} <= set(told):
        return 0, 0, 0, 0
    return len(told), told.index("%T"), told.index("%b"), told.index("%t")


def _registered_by_after(after: Any) -> tuple[CodeType | None, int]:
    """The function inside of Misc.after that it registers, and where in its closure the program's is."""
    code = getattr(getattr(after, "__wrapped__", after), "__code__", None)  # past the tracer of windows
    for constant in getattr(code, "co_consts", ()):
        free = getattr(constant, "co_freevars", ())
        if "func" in free and "args" in free:
            return constant, free.index("func")
    return None, 0


def _mainloops(tkinter: ModuleType) -> frozenset[CodeType]:
    """The code of tkinter's own functions that run the loop until the window is gone."""
    functions = (getattr(one, "__wrapped__", one) for one in (tkinter.mainloop, tkinter.Misc.mainloop))
    codes = (getattr(function, "__code__", None) for function in functions)
    return frozenset(code for code in codes if code is not None)


def _runs_on_this_thread(codes: frozenset[CodeType]) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def _path_of(widget: Any) -> str:
    path = getattr(widget, "_w", None)
    return path if isinstance(path, str) else "."


def _name_of(function: Any) -> str:
    depth = 0
    while isinstance(function, partial) and depth < _PARTIALS_MAX:
        function = function.func
        depth += 1
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _number(text: object) -> int:
    """A number as Tcl writes it; 0: the text is not one."""
    try:
        return int(text)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return 0
