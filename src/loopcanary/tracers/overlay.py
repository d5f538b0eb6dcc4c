"""What an overlay shows: how many frames a second the window shows, and the last stall."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from loopcanary.model.stall import Stall
from loopcanary.model.units import format_duration
from loopcanary.words.text import printable

if TYPE_CHECKING:
    from loopcanary.model import Issue, Session, ShownFrame

_SPAN_NS = 1_000_000_000
_FRAMES_MAX = 512
_NAME_MAX = 40


class OverlayBoard:
    """A reporter (drain thread) and a listener of frames (the threads that draw). Nothing is raised."""

    name = "overlay"

    def __init__(self) -> None:
        self._frames: deque[ShownFrame] = deque(maxlen=_FRAMES_MAX)
        self._stall = ""

    # ---- whom it hears --------------------------------------------------------------------------

    def hear(self, frame: ShownFrame) -> None:
        """A frame was shown."""
        self._frames.append(frame)

    def report(self, issue: Issue, repeated: int) -> None:  # noqa: ARG002 - the last one is what counts
        """The last stall is this one."""
        if isinstance(issue, Stall):
            self._stall = _stall_line(issue)

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:  # noqa: ARG002 - as Reporter has it
        """The next session has none yet."""
        self._stall = ""
        self._frames.clear()

    # ---- protocols.Board ------------------------------------------------------------------------

    def text(self, thread: int, now_ns: int) -> str:
        """One line or two."""
        return f"{self._rate(thread, now_ns)}\n{self._stall}".rstrip()

    def _rate(self, thread: int, now_ns: int) -> str:
        """By the formula of docs/internals/frames.md, over a second of the scene that was drawn last."""
        frames = [frame for frame in tuple(self._frames) if frame.thread == thread]
        shown = [
            frame
            for frame in frames
            if frame.scene == frames[-1].scene and frame.shown_ns > now_ns - _SPAN_NS
        ]
        took_ns = sum(frame.shown_ns - frame.start_ns for frame in shown)
        if took_ns <= 0:
            return "no frames"
        fps = min(shown[-1].refresh_hz, 1e9 * len(shown) / took_ns)
        dropped = sum(frame.dropped for frame in shown)
        return f"{fps:.0f} fps" + (f", {dropped} dropped" if dropped else "")


def _stall_line(stall: Stall) -> str:
    culprit = stall.culprit
    if culprit is None:
        where = stall.callback or stall.cause.value
    else:
        where = f"{culprit.qualname} {culprit.file.rpartition('/')[2]}:{culprit.line}"
    return f"stall {format_duration(stall.duration_ns)}: {printable(where, _NAME_MAX)}"
