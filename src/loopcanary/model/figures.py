"""Figures of frames, input events and idle work, and their limits.

A frame's time runs from the frame before it, or from the end of a pause in drawing. The expected time is one
interval of the screen's refresh rate. Durations are nanoseconds and rates millihertz, so that every count is
exact. Formulas: docs/internals/frames.md.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model.spelling import NEEDED, spelled, written

_PARTS = 16
_PART_BITS = 4
BUCKETS = 64 * _PARTS


def bucket_of(ns: int) -> int:
    """The bucket of a duration in a log-linear histogram, whose quantiles are at most 1/16 too large: linear
    below 16 ns, then sixteen to each power of two."""
    if ns < _PARTS:
        return max(ns, 0)
    octave = ns.bit_length() - _PART_BITS - 1
    return min((octave << _PART_BITS) + (ns >> octave), BUCKETS - 1)


def upper_ns(bucket: int) -> int:
    """The longest duration in a bucket."""
    if bucket < 2 * _PARTS:
        return bucket
    octave = (bucket >> _PART_BITS) - 1
    return (((bucket & (_PARTS - 1)) + _PARTS + 1) << octave) - 1


def quantile_ns(counts: dict[int, int], share: float) -> int:
    """The duration that this share of the counted durations do not exceed; 0 if there are none."""
    rest = max(1, -(-sum(counts.values()) * share // 1)) if counts else 0
    for bucket in sorted(counts):
        rest -= counts[bucket]
        if rest <= 0:
            return upper_ns(bucket)
    return 0


INPUT_LAG_NS = 200_000_000
"""An input that is handled later is an issue: the limit of "good" of web.dev's Interaction to Next Paint."""
IDLE_LAG_NS = 2_000_000_000
"""An idle handler that takes longer is an issue: Matrix's IdleHandlerLagTracer."""
SPIN_NS = 1_000_000_000
"""A loop spins if it does not wait for this time, since one kind of work schedules itself again each time."""


def spin_told_after_ns(took_ns: int) -> int:
    """The duration at which a spin that grows is reported again: a second more, or a quarter more if that is
    longer."""
    return took_ns + max(SPIN_NS, took_ns // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFigures:
    """How long input events took on one thread, from their time stamp to the end of their handling.

    Quantiles are upper bounds of buckets 1/16 of an octave wide: at most 6.25 % too long.
    """

    thread: str
    loop: str
    events: int
    p50_ns: int
    p98_ns: int
    """As Interaction to Next Paint: of 50 events, one may be worse."""
    worst_ns: int
    worst: str | None
    """The event that took longest, by class and receiver; None: unknown."""
    queued_ns: int = field(metadata=spelled(absent=0))
    """Time that events waited for the loop, added up."""
    lag_ns: int = field(metadata=spelled(absent=0))
    """Time from arrival to the end of handling, added up."""
    one_of: int = 1
    """One of so many events is timed and counted; 1: all are. Of a server's requests, one of sixteen is."""

    @property
    def is_sampled(self) -> bool:
        """Whether only some of the events were timed."""
        return self.one_of > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleFigures:
    """One kind of idle work on one thread."""

    thread: str
    loop: str
    name: str
    runs: int
    total_ns: int
    longest_ns: int
    spun_ns: int = 0
    """Time in which it kept the loop from waiting by scheduling itself again each time."""


MHZ = 1_000
"""Millihertz in a hertz."""
_NS_MHZ = 1_000_000_000_000
_S_NS = 1_000_000_000
FROZEN_NS = 700_000_000
"""A frame of more is frozen: Android vitals, "Slow rendering"."""
SLICE_NS = 6_000_000_000
"""Frame time of one slice: Matrix's `timeSliceMs`."""
HITCH_RATIO_MAX = 10.0
"""Milliseconds of lateness per second of frames from which scrolling is in need of attention: Apple, "Explore
UI animation hitches and the render loop"."""


class DropLevel(Enum):
    """How bad a frame is: Matrix's FPSTracer.DropStatus."""

    BEST = "best"
    NORMAL = "normal"
    MIDDLE = "middle"
    HIGH = "high"
    FROZEN = "frozen"

    @property
    def least(self) -> int:
        """The fewest dropped frames at this level."""
        return LEVEL_BOUNDS[LEVELS.index(self)]


LEVELS = tuple(DropLevel)
LEVEL_BOUNDS = (0, 3, 9, 24, 42)
_BY_LEVEL = spelled(keys=tuple(level.value for level in LEVELS))


def interval_ns(refresh_mhz: int) -> int:
    """The expected time of a frame, rounded."""
    return (_NS_MHZ + refresh_mhz // 2) // refresh_mhz


def intervals(duration_ns: int, refresh_mhz: int) -> int:
    """Whole refresh intervals in a frame's time: Matrix's FrameTracer, (frame - last) / interval."""
    return duration_ns * refresh_mhz // _NS_MHZ


def dropped_frames(duration_ns: int, refresh_mhz: int) -> int:
    """Refreshes of the screen that passed without a new frame: Matrix's FPSTracer, period / interval - 1.

    One interval is the frame's own; a frame in time has dropped none.
    """
    return max(0, duration_ns * refresh_mhz // _NS_MHZ - 1)


def level_index(dropped: int) -> int:
    """The level of a frame, as an index of LEVELS."""
    if dropped < 3:
        return 0
    return 1 if dropped < 9 else 2 if dropped < 24 else 3 if dropped < 42 else 4


def level_of(dropped: int) -> DropLevel:
    """The level of a frame that dropped this many."""
    return LEVELS[level_index(dropped)]


def frames_per_second(count: int, sum_ns: int, refresh_mhz: int) -> float:
    """min(refresh, 1000 x count / sum), as Matrix's FPSTracer has it; of no frames, the refresh rate."""
    refresh_hz = refresh_mhz / MHZ
    return min(refresh_hz, _S_NS * count / sum_ns) if sum_ns > 0 else refresh_hz


def lateness_ns(duration_ns: int, refresh_mhz: int) -> int:
    """How much later than expected a frame came; 0 where no refresh passed without one.

    A frame of 17 ms at 60 Hz is shown at the same refresh as one of 16: it is not late.
    """
    if duration_ns * refresh_mhz // _NS_MHZ < 2:
        return 0
    return duration_ns - interval_ns(refresh_mhz)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFrame:
    """One frame that was shown, as frame listeners get it. Times of the monotonic clock."""

    scene: str | None
    thread: int
    """The thread's ident."""
    loop: str
    start_ns: int
    """When its time began: when the frame before it was shown, or when drawing went on after a pause."""
    shown_ns: int
    refresh_hz: float
    intervals: int
    """Whole refresh intervals that it took."""
    dropped: int
    level: DropLevel

    @property
    def duration_ns(self) -> int:
        """From `start_ns` to `shown_ns`."""
        return self.shown_ns - self.start_ns

    @property
    def expected_ns(self) -> int:
        """When it should have been shown."""
        return self.start_ns + interval_ns(round(self.refresh_hz * MHZ))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFigures:
    """Figures of some frames of one refresh rate; two of the same rate add up with `+`."""

    frames: int = field(default=0, metadata=NEEDED)
    """Number of frames."""
    frame_ns: int = field(default=0, metadata=NEEDED)
    """Time of the frames, without pauses."""
    refresh_mhz: int = field(metadata=spelled(bounds=(1, 1_000_000_000)))
    """The expected refresh rate."""
    drop_level: tuple[int, ...] = field(default=(0, 0, 0, 0, 0), metadata=_BY_LEVEL)
    """Frames at each level, best first."""
    drop_sum: tuple[int, ...] = field(default=(0, 0, 0, 0, 0), metadata=_BY_LEVEL)
    """Dropped frames at each level."""
    late_ns: int = field(default=0, metadata=NEEDED)
    """Lateness of all late frames."""
    janky_ns: int = 0
    """Lateness of the frames at level `normal` and worse."""
    frozen: int = field(default=0, metadata=NEEDED)
    """Frames of more than 700 ms."""
    worst_ns: int = field(default=0, metadata=NEEDED)
    """The longest frame."""

    def __add__(self, other: FrameFigures) -> FrameFigures:
        """The figures of the frames of both; `other` has the same refresh rate."""
        return FrameFigures(
            refresh_mhz=self.refresh_mhz,
            frames=self.frames + other.frames,
            frame_ns=self.frame_ns + other.frame_ns,
            drop_level=tuple(a + b for a, b in zip(self.drop_level, other.drop_level, strict=True)),
            drop_sum=tuple(a + b for a, b in zip(self.drop_sum, other.drop_sum, strict=True)),
            late_ns=self.late_ns + other.late_ns,
            janky_ns=self.janky_ns + other.janky_ns,
            frozen=self.frozen + other.frozen,
            worst_ns=max(self.worst_ns, other.worst_ns),
        )

    @property
    def refresh_hz(self) -> float:
        return self.refresh_mhz / MHZ

    @property
    @written(after="refresh_mhz")
    def fps(self) -> float:
        """min(refresh, 1000 x count / sum)."""
        return frames_per_second(self.frames, self.frame_ns, self.refresh_mhz)

    @property
    @written(after="janky_ns")
    def hitch_ms_per_s(self) -> float:
        """Milliseconds of lateness in a second of frame time."""
        return 1_000 * self.late_ns / self.frame_ns if self.frame_ns else 0.0

    @property
    @written(after="frozen")
    def frozen_share(self) -> float:
        """Frames of more than 700 ms, as a share of all."""
        return self.frozen / self.frames if self.frames else 0.0

    @property
    @written(after="fps")
    def dropped(self) -> int:
        """Dropped frames at all levels."""
        return sum(self.drop_sum)

    @property
    def is_janky(self) -> bool:
        """Whether people notice: there was a frozen frame, or the frames that dropped three and more were
        late by more than 10 ms in each second. Steady 30 fps on a screen of 60 Hz are slow, but not jank."""
        return self.frozen > 0 or 1_000 * self.janky_ns > HITCH_RATIO_MAX * self.frame_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSlice:
    """The frames of one stretch of a scene."""

    began_wall_ns: int
    ended_wall_ns: int
    figures: FrameFigures = field(metadata=spelled(flat=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneFrames:
    """All frames of one scene in a session."""

    thread: str
    loop: str
    scene: str | None
    figures: FrameFigures = field(metadata=spelled(flat=True))
    slices: tuple[FrameSlice, ...] = ()
    """Oldest first, each of 6 s of frame time or, in a long session, of a multiple; the last may be
    shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFigures:
    """Each entry by thread and kind of loop; empty where nothing was traced."""

    frames: tuple[SceneFrames, ...] = ()
    input: tuple[InputFigures, ...] = ()
    idle: tuple[IdleFigures, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.frames or self.input or self.idle)
