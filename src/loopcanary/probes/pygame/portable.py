"""The pygame probe of the portable engine: the same stand-ins, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.probes.pygame.calls import GameCalls
from loopcanary.probes.pygame.probe import PygameProbe

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopcanary.protocols import LoopHooks, PortableSide


class PortablePygameProbe(PygameProbe):
    """Watches the thread that flips."""

    def __init__(
        self,
        engine: PortableSide,
        loop_seen: Callable[[], None],
        contain: Callable[[Callable[[], None]], object],
    ) -> None:
        """As registry.LoopKind says."""
        super().__init__(_Calls(engine), loop_seen, contain)


class _Calls:
    """What of the extension the probe needs."""

    GameCalls = GameCalls

    def __init__(self, engine: PortableSide) -> None:
        self._engine = engine

    def LoopHooks(self, kind: str, loop_seen: Callable[[], object]) -> LoopHooks:  # noqa: N802 - as there
        return self._engine.LoopHooks(kind, loop_seen)
