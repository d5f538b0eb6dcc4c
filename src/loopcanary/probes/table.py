"""The kinds of loops that are known: one line a kind.

A probe's module is loaded when the program has imported one of the modules that the kind awaits, and not
before: this table is read at the start of every watched interpreter.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence


class LoopKind:
    """Where a kind's probe is, and which imports bring such a loop.

    The probe is made as `probe(native, loop_seen, contain)`: the extension; whom to tell that a loop begins
    to run; what calls a function so that nothing gets out. It is a `protocols.Probe`.

    `portable`: module and name of the probe that the portable engine has for the kind, made in the same way,
    with a `protocols.PortableSide` in the extension's place; None: it watches no such loop.
    """

    __slots__ = ("awaits", "kind", "module", "portable", "probe")

    def __init__(
        self,
        kind: str,
        *,
        awaits: Sequence[str],
        module: str,
        probe: str,
        portable: tuple[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.awaits = awaits
        self.module = module
        self.probe = probe
        self.portable = portable


_PROBES = "loopcanary.probes"

KINDS = (
    LoopKind(
        "asyncio", awaits=("asyncio.base_events",), module=f"{_PROBES}.asyncio.probe", probe="AsyncioProbe"
    ),
    LoopKind("uvloop", awaits=("uvloop.loop",), module=f"{_PROBES}.uvloop.probe", probe="UvloopProbe"),
    LoopKind(
        "pygame",
        awaits=("pygame",),
        module=f"{_PROBES}.pygame.probe",
        probe="PygameProbe",
        portable=(f"{_PROBES}.pygame.portable", "PortablePygameProbe"),
    ),
    LoopKind("gevent", awaits=("gevent.hub",), module=f"{_PROBES}.gevent.probe", probe="GeventProbe"),
    LoopKind(
        "trio",
        awaits=("trio._core._run",),
        module=f"{_PROBES}.trio.probe",
        probe="TrioProbe",
        portable=(f"{_PROBES}.trio.portable", "PortableTrioProbe"),
    ),
    LoopKind(
        "qt",
        awaits=("PySide6.QtCore", "PyQt6.QtCore", "PyQt5.QtCore", "PySide2.QtCore"),
        module=f"{_PROBES}.qt.probe",
        probe="QtProbe",
        portable=(f"{_PROBES}.qt.portable", "PortableQtProbe"),
    ),
    LoopKind(
        "twisted",
        awaits=("twisted.internet.base",),
        module=f"{_PROBES}.twisted.probe",
        probe="TwistedProbe",
        portable=(f"{_PROBES}.twisted.probe", "TwistedProbe"),
    ),
    LoopKind(
        "tk",
        awaits=("tkinter",),
        module=f"{_PROBES}.tk.probe",
        probe="TkProbe",
        portable=(f"{_PROBES}.tk.portable", "PortableTkProbe"),
    ),
    LoopKind("glib", awaits=("gi.overrides.GLib",), module=f"{_PROBES}.glib.probe", probe="GLibProbe"),
)

BY_RUN_FOREVER = ("asyncio", "uvloop")
"""Kinds for which the portable engine has one probe of its own (asyncio.portable)."""

AWAITED = tuple(module for kind in KINDS for module in kind.awaits)
"""Without one of these modules no loop that we know of is made."""
