"""A run's figures of frames, input and idle work."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures.frames import SceneFrames
from loopcanary.model.figures.lags import IdleFigures, InputFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFigures:
    """Each entry by thread and kind of loop; empty where nothing was traced."""

    frames: tuple[SceneFrames, ...] = ()
    input: tuple[InputFigures, ...] = ()
    idle: tuple[IdleFigures, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.frames or self.input or self.idle)
