"""What the settings say of windows. Loaded for the first toolkit that has some, or with an overlay."""

from __future__ import annotations

from loopcanary.engine.canary import Canary
from loopcanary.model import Config
from loopcanary.registry import REGISTRY, FrameListener
from loopcanary.tracers.overlay import OverlayBoard
from loopcanary.tracers.titles import Titles


class DesktopWindows:
    """See protocols.Windows."""

    def __init__(self, titles: Titles, board: OverlayBoard | None) -> None:
        self.scene_of = titles.scene_of
        self.board = board


_BOARD = OverlayBoard()
"""One a process, as the engine is: it is a reporter, and listens to frames."""


def windows_of(canary: Canary) -> DesktopWindows:
    """For the canary's probes."""
    return DesktopWindows(Titles(are_told=canary.config.window_titles), board_of(canary.config))


def board_of(config: Config) -> OverlayBoard | None:
    """What an overlay shows, if one is wanted; then it hears of frames from now on."""
    if not config.overlay:
        REGISTRY.remove_frame_listener(_BOARD.hear)
        return None
    REGISTRY.add_frame_listener(FrameListener(_BOARD.hear))
    return _BOARD
