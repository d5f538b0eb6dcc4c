"""The Tk probe: turns seen by an event source of Tcl's, commands in `CallWrapper.__call__`, which becomes a C
function that does what tkinter's own does (native/probes/tk/callback.c).
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from loopcanary.probes import ImportWatch, PatchingProbe, is_from
from loopcanary.probes.tk.commands import LOOPS, event_places, registered_by_after
from loopcanary.probes.tk.frames import TkWindows
from loopcanary.probes.tk.traces import TkTraces

if TYPE_CHECKING:
    from types import CodeType, FrameType, ModuleType

    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows
    from loopcanary.protocols.tracing import Tracers


class TkProbe(PatchingProbe):
    """Patches tkinter, which is imported; callbacks registered from then on are seen as such."""

    kind = "tk"
    _engine: Native

    def __init__(self, *sides: Any) -> None:
        super().__init__(*sides)
        self._watches = [ImportWatch("tkinter.commondialog", lambda: self._contain(self._patch_dialogs))]
        self._windows = TkWindows(self._engine)
        self._traces = TkTraces(self._windows.scene)

    def use_tracers(self, tracers: Tracers) -> None:
        """Input and idle work are reported to `tracers`. Called before `install`."""
        self._traces.use(tracers)
        self._windows.use(tracers=tracers)

    def use_windows(self, windows: Windows) -> None:
        self._windows.use(windows=windows)

    def _take_back(self) -> None:
        super()._take_back()
        self._engine.tk_listen(None, None)
        self._windows.close()
        self._engine.tk_release()

    def _patch(self) -> None:
        tkinter, patches = sys.modules["tkinter"], self._patches
        library = getattr(sys.modules.get("_tkinter"), "__file__", None)
        if not self._engine.tk_learn(library):
            self._notes.append("tk: Tcl's functions are hidden in this build; each callback counts as a turn")
        if not self._engine.tk_listen(library, self._windows.heard):
            self._notes.append("tk: frames are not seen: what Tk draws with cannot be hooked in this build")
        self._patch_commands(tkinter)
        for name, role in LOOPS:
            patches.put(tkinter.Misc, name, partial(self._loop, role=role))
        patches.put(tkinter.Misc, "update_idletasks", partial(self._loop, role="draw"))
        for name in ("wm_title", "title"):
            patches.put(tkinter.Wm, name, self._engine.tk_titled)
        patches.put(tkinter, "mainloop", partial(self._loop, role="run"))
        patches.put(tkinter.Tk, "destroy", partial(self._loop, role="gone"))
        patches.put(tkinter.Misc, "after_idle", self._traces.after_idle(self._engine.tk_idle))
        if _runs_on_this_thread(_mainloops(tkinter)):
            self._seen()

    def _patch_commands(self, tkinter: ModuleType) -> None:
        original = tkinter.CallWrapper.__dict__["__call__"]
        site = _call_sites(original.__code__) if is_from(original, tkinter) else None
        after = registered_by_after(tkinter.Misc.after)
        event = event_places(tkinter.Misc._subst_format)
        self._patches.put(
            tkinter.CallWrapper,
            "__call__",
            lambda found: self._engine.tk_callback(
                found, site, vars(tkinter), after, self._seen, self._traces.input, partial, event
            ),
        )

    def _patch_dialogs(self) -> None:
        dialog = sys.modules["tkinter.commondialog"].Dialog
        self._patches.put(dialog, "show", partial(self._loop, role="nested"))

    def _loop(self, original: object, *, role: str) -> object:
        return self._engine.tk_loop(original, role, self._seen)

    def _seen(self) -> None:
        """A thread runs Tcl's loop. Its mainloop() may have begun before it could be seen."""
        self._contain(self._loop_seen)
        self._contain(self._adopt)

    def _adopt(self) -> None:
        if self._is_on and _runs_on_this_thread(_mainloops(sys.modules["tkinter"])):
            self._engine.tk_adopt()


def _mainloops(tkinter: ModuleType) -> frozenset[CodeType]:
    """The code of tkinter's own functions that run the loop until the window is gone."""
    codes = (getattr(function, "__code__", None) for function in (tkinter.mainloop, tkinter.Misc.mainloop))
    return frozenset(code for code in codes if code is not None)


def _runs_on_this_thread(codes: frozenset[CodeType]) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def _call_sites(code: CodeType) -> tuple[CodeType, *tuple[tuple[int, int], ...]]:
    """Where the original calls `func`, `subst` and the widget's report: (offset of the instruction, line)."""
    return code, *(_call_site(code, name) for name in ("func", "subst", "_report_exception"))


def _call_site(code: CodeType, name: str) -> tuple[int, int]:
    """Where `self.NAME(*args)` is called last: the widest expression that begins where `self` does."""
    line, column = _place_of(code, name)
    widths = [
        (end - start, -2 * index)
        for index, (at, _, start, end) in enumerate(code.co_positions())
        if at == line and start is not None and start == column and end is not None
    ]
    return (-max(widths)[1] if widths else 0), line


def _place_of(code: CodeType, name: str) -> tuple[int, int | None]:
    """The line and column where the attribute is loaded for the last time."""
    import dis  # only where Tk is: it costs some milliseconds

    place: tuple[int, int | None] = code.co_firstlineno, None
    for instruction in dis.get_instructions(code):
        positions = instruction.positions
        if instruction.argval == name and positions is not None and positions.lineno is not None:
            place = positions.lineno, positions.col_offset
    return place
