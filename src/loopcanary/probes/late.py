"""A probe that is loaded when the program has imported what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.probes.on_import import ImportWatch
from loopcanary.registry import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopcanary._native import Native
    from loopcanary.protocols.loops import PortableSide, Probe, Windows
    from loopcanary.protocols.tracing import Tracers
    from loopcanary.registry import LoopKind


class LateProbe:
    """Stands for the probe of one kind until a loop of the kind can be made."""

    def __init__(
        self,
        kind: LoopKind,
        native: Native | PortableSide,
        loop_seen: Callable[[], None],
        contain: Callable[[Callable[[], None]], object],
        tracers: Callable[[], Tracers] | None = None,
        *,
        windows: Callable[[], Windows] | None = None,
        probe: str,
    ) -> None:
        """`tracers`: for a probe that reports frames, input or idle work (protocols.Traced); `windows`: for
        one of a toolkit with windows (protocols.Windowed). `contain` calls a function, and nothing that it
        raises gets out: probes are loaded in the middle of the program's own imports. `probe`: the one of the
        engine that runs."""
        self.kind = kind.kind
        self._where = probe
        self._native = native
        self._loop_seen = loop_seen
        self._contain = contain
        self._tracers = tracers
        self._windows = windows
        self._watch = ImportWatch(kind.awaits, lambda: contain(self._load))
        self._probe: Probe | None = None

    def install(self) -> None:
        """Loads and installs the probe, now or when its library is imported. Idempotent."""
        if self._probe is None:
            self._watch.cancel()
            self._watch.start()
        else:
            self._probe.install()

    def uninstall(self) -> None:
        """Takes back what is still ours."""
        self._watch.cancel()
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.uninstall()

    def notes(self) -> Sequence[str]:
        """What the probe has to say of itself: that its library is too old, what it cannot see."""
        notes: Callable[[], Sequence[str]] | None = getattr(self._probe, "notes", None)
        return () if notes is None else notes()

    def _load(self) -> None:
        self._probe = probe = load(self._where)(self._native, self._loop_seen, self._contain)
        if self._tracers is not None and hasattr(probe, "use_tracers"):
            probe.use_tracers(self._tracers())
        elif self._tracers is not None and hasattr(probe, "use_tracers_when_needed"):
            probe.use_tracers_when_needed(self._tracers)
        if self._windows is not None and hasattr(probe, "use_windows"):
            probe.use_windows(self._windows())
        probe.install()
