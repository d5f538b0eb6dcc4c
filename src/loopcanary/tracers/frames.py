"""The frame tracer: what one surface shows, counted by scene. docs/internals/frames.md has the formulas.

Everything here runs on the surface's thread, but for `read`, which the drain calls: it looks at a scene's
figures between two looks at its epoch, and takes them only where nothing was in the making.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence, Sized
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.model.figures import (
    FROZEN_NS,
    LEVELS,
    MHZ,
    SLICE_NS,
    FrameFigures,
    ShownFrame,
    dropped_frames,
    interval_ns,
    intervals,
    lateness_ns,
    level_index,
)
from loopcanary.whose_exception import ours

PAUSE_NS = 100_000_000
"""A loop that had nothing to do for this time was drawing nothing."""
SCENES_MAX = 64
SLICES_MAX = 64
"""Of a scene; when there are as many, neighbours are put together, so that they span all of the session."""
WORST_MAX = 3
OTHER_SCENES = "(other scenes)"
_REFRESH_MIN_HZ, _REFRESH_MAX_HZ = 1.0, 1_000.0
_READS_MAX = 100


class FrameSink(Protocol):
    """Takes frames from a frame tracer. Nothing here raises."""

    @property
    def scene(self) -> Callable[[], str | None]:
        """Returns the scene that the program is in, as the program has named it."""

    @property
    def listening(self) -> Sized:
        """The live list of listeners for each frame."""

    @property
    def begins(self) -> Callable[[], object]:
        """A surface shows a frame after none, or after a pause."""

    def slice_over(self, over: SceneSlice) -> None:
        """A slice is over."""

    def shown(self, frame: ShownFrame, /) -> object:
        """A frame was shown, and there are listeners."""

    def failed(self, error: Exception, /) -> object:
        """Something of ours is wrong."""


@dataclass(frozen=True, slots=True)
class SlowFrame:
    """One of the worst frames of a slice."""

    start_ns: int
    shown_ns: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSlice:
    """A slice in the clock's own time."""

    began_ns: int
    ended_ns: int
    figures: FrameFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneSlice:
    """A slice that is over."""

    thread: str
    loop: str
    scene: str | None
    slice: RawSlice
    worst: tuple[SlowFrame, ...]

    @property
    def ended_ns(self) -> int:
        return self.slice.ended_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneReading:
    """What is known of one scene."""

    scene: str | None
    figures: FrameFigures
    slices: tuple[RawSlice, ...]


class _Scene:
    """One scene at one refresh rate: slices that are over, and the one in the making."""

    __slots__ = (
        *("began_ns", "closed", "ended_ns", "epoch", "frame_ns", "frames", "frozen", "janky_ns", "late_ns"),
        *("levels", "name", "refresh_mhz", "slices", "sums", "worst", "worst_ns"),
    )

    def __init__(self, name: str | None, refresh_mhz: int) -> None:
        self.name = name
        self.refresh_mhz = refresh_mhz
        self.epoch = 0
        self.closed = FrameFigures(refresh_mhz=refresh_mhz)
        self.slices: list[RawSlice] = []
        self._clear()

    def _clear(self) -> None:
        self.frames = self.frame_ns = self.late_ns = self.janky_ns = self.frozen = self.worst_ns = 0
        self.began_ns = self.ended_ns = 0
        self.levels = [0, 0, 0, 0, 0]
        self.sums = [0, 0, 0, 0, 0]
        self.worst: list[SlowFrame] = []

    def add(self, start_ns: int, shown_ns: int, dropped: int) -> bool:
        """One frame; True where the slice is full."""
        self.epoch += 1
        duration = shown_ns - start_ns
        if not self.frames:
            self.began_ns = start_ns
        self.ended_ns = shown_ns
        self.frames += 1
        self.frame_ns += duration
        level = level_index(dropped)
        self.levels[level] += 1
        if dropped:
            self.sums[level] += dropped
            late = lateness_ns(duration, self.refresh_mhz)
            self.late_ns += late
            if level:
                self.janky_ns += late
                self._note_worst(SlowFrame(start_ns, shown_ns, dropped))
        if duration > FROZEN_NS:
            self.frozen += 1
        self.worst_ns = max(self.worst_ns, duration)
        self.epoch += 1
        return self.frame_ns >= SLICE_NS

    def _note_worst(self, frame: SlowFrame) -> None:
        worst = [*self.worst, frame]
        worst.sort(key=lambda one: one.start_ns - one.shown_ns)
        self.worst = worst[:WORST_MAX]

    def current(self) -> FrameFigures:
        """The slice in the making."""
        return FrameFigures(
            refresh_mhz=self.refresh_mhz,
            frames=self.frames,
            frame_ns=self.frame_ns,
            drop_level=tuple(self.levels),
            drop_sum=tuple(self.sums),
            late_ns=self.late_ns,
            janky_ns=self.janky_ns,
            frozen=self.frozen,
            worst_ns=self.worst_ns,
        )

    def close(self) -> tuple[RawSlice, tuple[SlowFrame, ...]]:
        """Ends the slice; returns it with its worst frames."""
        self.epoch += 1
        over = RawSlice(began_ns=self.began_ns, ended_ns=self.ended_ns, figures=self.current())
        worst = tuple(self.worst)
        slices = [*self.slices, over]
        self.slices = thinned(slices) if len(slices) >= SLICES_MAX else slices
        self.closed += over.figures
        self._clear()
        self.epoch += 1
        return over, worst

    def read(self) -> SceneReading:
        """The scene's figures of one moment. Any thread."""
        for _ in range(_READS_MAX):
            epoch = self.epoch
            closed, slices, current = self.closed, self.slices, self.current()
            began_ns, ended_ns = self.began_ns, self.ended_ns
            if epoch == self.epoch and not epoch % 2:
                return self._reading(
                    closed, slices, RawSlice(began_ns=began_ns, ended_ns=ended_ns, figures=current)
                )
        # Only where the surface's thread was stopped in the middle of a frame's few stores.
        nothing = FrameFigures(refresh_mhz=self.refresh_mhz)
        return self._reading(self.closed, self.slices, RawSlice(began_ns=0, ended_ns=0, figures=nothing))

    def _reading(self, closed: FrameFigures, slices: list[RawSlice], last: RawSlice) -> SceneReading:
        if not last.figures.frames:
            return SceneReading(scene=self.name, figures=closed, slices=tuple(slices))
        return SceneReading(scene=self.name, figures=closed + last.figures, slices=(*slices, last))


def thinned(slices: list[RawSlice]) -> list[RawSlice]:
    """Neighbours put together: half as many, that span the same time. Of slices that were put together more
    often and less often in one list, the newer ones are the shorter."""
    pairs = [
        RawSlice(began_ns=first.began_ns, ended_ns=second.ended_ns, figures=first.figures + second.figures)
        for first, second in zip(slices[::2], slices[1::2], strict=False)
    ]
    return pairs + slices[2 * len(pairs) :]


class FrameTracer:
    """Counts the frames of one surface; see protocols.FrameTrace for what each call means."""

    def __init__(
        self, sink: FrameSink, *, thread: str, ident: int, loop: str, refresh_hz: float = 60.0
    ) -> None:
        self.thread = thread
        self.loop = loop
        self._sink = sink
        self._scene_now = sink.scene
        self._begins = sink.begins
        self._listening = sink.listening
        self._ident = ident
        self._refresh_mhz = 60 * MHZ
        self._refresh_hz = 60.0
        self._start_ns: int | None = None
        self._scenes: dict[tuple[str | None, int], _Scene] = {}
        self._last: _Scene | None = None
        """The scene of the frame before, while nothing else about it has changed."""
        self._in_time_ns = 0
        """A frame that takes less has dropped none."""
        self.is_closed = False
        self.is_off = False
        self.at_refresh_rate(refresh_hz)

    # ---- protocols.FrameTrace -----------------------------------------------------------------

    def at_refresh_rate(self, hertz: float) -> None:
        """What is expected from now on."""
        if hertz == self._refresh_hz:
            return
        try:
            if _REFRESH_MIN_HZ <= hertz <= _REFRESH_MAX_HZ:
                self._refresh_hz = hertz
                self._refresh_mhz = round(hertz * MHZ)
                self._expect()
        except ours() as error:  # a toolkit may call anything a rate
            self._sink.failed(error)

    def frame_drawn(self, now_ns: int, scene: str | None = None) -> None:
        start_ns, self._start_ns = self._start_ns, now_ns
        if start_ns is None or now_ns < start_ns:
            self._begins()
            return
        try:
            name, last = self._scene_now() or scene, self._last
            took_ns = now_ns - start_ns
            # Most frames are like the one before, and in time: they cost a few lines. A frame comes after a
            # wait, when none of our code is in the processor's cache, so each line and each call counts.
            if last is not None and took_ns < self._in_time_ns and last.name == name and not self._listening:
                last.epoch += 1
                last.frames += 1
                last.frame_ns += took_ns
                last.levels[0] += 1
                last.ended_ns = now_ns
                if took_ns > last.worst_ns:  # noqa: PLR1730 - max() would be one more call
                    last.worst_ns = took_ns
                last.epoch += 1
                if last.frame_ns >= SLICE_NS:
                    self._close_slice(last)
            else:
                self._count(start_ns, now_ns, name)
        except ours() as error:  # the boundary to the program's own drawing
            self._sink.failed(error)

    def frame(self, begin_ns: int, end_ns: int, scene: str | None = None) -> None:
        """The drawing of one frame."""
        if self._start_ns is None or begin_ns - self._start_ns >= PAUSE_NS:
            self._start_ns = begin_ns
            self._begins()
        self.frame_drawn(end_ns, scene)

    def waited(self, begin_ns: int, end_ns: int) -> None:
        if end_ns - begin_ns >= PAUSE_NS and self._start_ns is not None and self._start_ns < end_ns:
            self._start_ns = end_ns

    def idle(self) -> None:
        self._start_ns = None

    def close(self) -> None:
        """The surface is gone. What a last slice holds is judged now."""
        if not self.is_closed:
            self.is_closed = True
            self._start_ns = None
            self.finish()

    def open_again(self, refresh_hz: float) -> None:
        """Another surface of the same thread takes over."""
        self.is_closed = False
        self._start_ns = None
        self.at_refresh_rate(refresh_hz)

    @property
    def is_off(self) -> bool:
        """Whether frames are not counted now. Any thread."""
        return self._is_off

    @is_off.setter
    def is_off(self, is_off: bool) -> None:
        self._is_off = is_off
        self._expect()

    def _expect(self) -> None:
        """Sets when the next frame counts as in time. If frames are not counted, no frame is: all take the
        long way."""
        self._in_time_ns = -1 if self._is_off else 2 * interval_ns(self._refresh_mhz) - 2
        self._last = None

    # ---- counting -----------------------------------------------------------------------------

    def _count(self, start_ns: int, shown_ns: int, scene_name: str | None) -> None:
        if self._is_off:
            return
        refresh_mhz = self._refresh_mhz
        duration_ns = shown_ns - start_ns
        dropped = dropped_frames(duration_ns, refresh_mhz)
        scene = self._scenes.get((scene_name, refresh_mhz)) or self._new_scene(scene_name)
        self._last = scene if scene.name == scene_name else None
        if scene.add(start_ns, shown_ns, dropped):
            self._close_slice(scene)
        if self._listening:
            self._sink.shown(
                ShownFrame(
                    scene=scene_name,
                    thread=self._ident,
                    loop=self.loop,
                    start_ns=start_ns,
                    shown_ns=shown_ns,
                    refresh_hz=self._refresh_hz,
                    intervals=intervals(duration_ns, refresh_mhz),
                    dropped=dropped,
                    level=LEVELS[level_index(dropped)],
                )
            )

    def _new_scene(self, name: str | None) -> _Scene:
        refresh_mhz = self._refresh_mhz
        if len(self._scenes) >= SCENES_MAX:
            name = OTHER_SCENES
        key = (name, refresh_mhz)
        known = self._scenes.get(key)
        if known is not None:
            return known
        if len(self._scenes) > SCENES_MAX:  # one more for each other refresh rate would have no bound, too
            return next(scene for scene in self._scenes.values() if scene.name == OTHER_SCENES)
        # Not stored in place: the drain may be on its way through the table.
        scene = _Scene(name, refresh_mhz)
        self._scenes = {**self._scenes, key: scene}
        return scene

    def _close_slice(self, scene: _Scene) -> None:
        self._last = None  # the next slice begins in full
        over, worst = scene.close()
        self._sink.slice_over(
            SceneSlice(thread=self.thread, loop=self.loop, scene=scene.name, slice=over, worst=worst)
        )

    # ---- the drain ----------------------------------------------------------------------------

    def read(self) -> list[SceneReading]:
        """What has been shown so far, by scene. Any thread."""
        return [scene.read() for scene in self._scenes.values()]

    def finish(self) -> None:
        """Judges the slices in the making. The surface's thread, or any when nothing is shown any more."""
        try:
            for scene in self._scenes.values():
                if scene.frames:
                    self._close_slice(scene)
        except ours() as error:  # as above
            self._sink.failed(error)


_WAITING_MAX = 1_024
"""Frames that wait for listeners on the thread: four seconds of 240 Hz. More are dropped, oldest first."""


class Listener(Protocol):
    """As registry.FrameListener."""

    @property
    def hear(self) -> Callable[[ShownFrame], object]:
        """What is called."""

    @property
    def on_thread(self) -> bool:
        """Not on the surface's thread."""


class FrameListeners:
    """Hands frames on. One that raises is switched off, alone."""

    def __init__(self, listeners: Sequence[Listener], failed: Callable[[str, Exception], object]) -> None:
        """`listeners`: the live list; `failed` gets the name of each that is switched off."""
        self.registered = listeners
        self._failed = failed
        self._off: set[int] = set()
        self._waiting: deque[ShownFrame] = deque(maxlen=_WAITING_MAX)
        self._bell: threading.Semaphore | None = None
        self._is_over = False

    def tell(self, frame: ShownFrame) -> None:
        """One frame. The surface's thread; nothing is raised."""
        later = False
        for listener in list(self.registered):
            if listener.on_thread:
                later = True
            else:
                self._call(listener, frame)
        if later:
            self._waiting.append(frame)
            self._ring()

    def end(self) -> None:
        """The thread ends when it has handed on what waits."""
        bell, self._bell = self._bell, None
        self._is_over = True
        if bell is not None:
            bell.release()

    def renew(self) -> None:
        """The engine begins anew, or a child has been forked: its parent's thread is not there."""
        self._bell = None
        self._is_over = False
        self._waiting.clear()

    def _ring(self) -> None:
        if self._bell is None:
            if self._is_over:
                return
            bell = self._bell = threading.Semaphore(0)
            try:
                # A thread of threading's own: the program has asked for one by registering the listener.
                threading.Thread(
                    target=self._run, args=(bell,), name="loopcanary-frames", daemon=True
                ).start()
            except RuntimeError as error:
                self._is_over = True
                self._failed("frame listeners on a thread", error)
                return
        self._bell.release()

    def _run(self, bell: threading.Semaphore) -> None:
        while True:
            bell.acquire()
            is_over = self._bell is not bell
            while True:
                try:
                    frame = self._waiting.popleft()
                except IndexError:
                    break
                for listener in list(self.registered):
                    if listener.on_thread:
                        self._call(listener, frame)
            if is_over:
                return

    def _call(self, listener: Listener, frame: ShownFrame) -> None:
        if id(listener) in self._off:
            return
        try:
            listener.hear(frame)
        except ours() as error:  # the program's own code, called in the middle of ours
            self._off.add(id(listener))
            name = getattr(listener.hear, "__qualname__", type(listener.hear).__qualname__)
            self._failed(f"frame listener {name}", error)
