"""Frames of a scripted source with known times, against figures that were worked out by hand."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.model import DropLevel, FrameFigures, ShownFrame
from loopcanary.model.figures import (
    SLICE_NS,
    dropped_frames,
    frames_per_second,
    interval_ns,
    intervals,
    lateness_ns,
    level_of,
)
from loopcanary.tracers.frames import OTHER_SCENES, SCENES_MAX, SLICES_MAX, FrameTracer, SceneSlice

MS = 1_000_000
HZ60 = 60_000


@dataclass
class Sink:
    scene_name: str | None = None
    listening: list[str] = field(default_factory=list)
    slices: list[SceneSlice] = field(default_factory=list)
    frames: list[ShownFrame] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    begun: int = 0

    def begins(self) -> None:
        self.begun += 1

    def scene(self) -> str | None:
        return self.scene_name

    def slice_over(self, over: SceneSlice) -> None:
        self.slices.append(over)

    def shown(self, frame: ShownFrame) -> None:
        self.frames.append(frame)

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


@pytest.fixture
def sink() -> Any:
    made = Sink()
    yield made
    assert made.errors == []


def tracer_of(sink: Sink, hertz: float = 60.0) -> FrameTracer:
    return FrameTracer(sink, thread="MainThread", ident=1, loop="pygame", refresh_hz=hertz)


def show(tracer: FrameTracer, durations_ms: list[float], start_ns: int = 0) -> int:
    now = start_ns
    tracer.frame_drawn(now)
    for duration in durations_ms:
        now += round(duration * MS)
        tracer.frame_drawn(now)
    return now


# ---- the formulas ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("duration_ms", "hertz", "passed", "dropped", "level"),
    [
        (10, 60, 0, 0, DropLevel.BEST),
        (16.666666, 60, 0, 0, DropLevel.BEST),
        (16.666667, 60, 1, 0, DropLevel.BEST),
        (33.333333, 60, 1, 0, DropLevel.BEST),
        (33.333334, 60, 2, 1, DropLevel.BEST),
        (66.666666, 60, 3, 2, DropLevel.BEST),
        (66.666667, 60, 4, 3, DropLevel.NORMAL),
        (166.666666, 60, 9, 8, DropLevel.NORMAL),
        (166.666667, 60, 10, 9, DropLevel.MIDDLE),
        (416.666666, 60, 24, 23, DropLevel.MIDDLE),
        (416.666667, 60, 25, 24, DropLevel.HIGH),
        (716.666666, 60, 42, 41, DropLevel.HIGH),
        (716.666667, 60, 43, 42, DropLevel.FROZEN),
        (8.333334, 120, 1, 0, DropLevel.BEST),
        (100, 144, 14, 13, DropLevel.MIDDLE),
        (1000, 59.94, 59, 58, DropLevel.FROZEN),
    ],
)
def test_dropped_frames_and_levels(duration_ms, hertz, passed, dropped, level):
    duration, refresh = round(duration_ms * MS), round(hertz * 1000)
    assert intervals(duration, refresh) == passed
    assert dropped_frames(duration, refresh) == dropped
    assert level_of(dropped) is level


def test_lower_bounds_of_the_levels_are_those_of_matrix():
    assert [level.least for level in DropLevel] == [0, 3, 9, 24, 42]


def test_fps_is_bounded_by_the_refresh_rate():
    assert frames_per_second(313, 6_000 * MS, HZ60) == pytest.approx(52.1666666, abs=1e-6)
    assert frames_per_second(600, 6_000 * MS, HZ60) == 60.0
    assert frames_per_second(0, 0, HZ60) == 60.0


def test_a_frame_is_late_only_where_a_refresh_passed_without_one():
    assert lateness_ns(17 * MS, HZ60) == 0
    assert lateness_ns(50 * MS, HZ60) == 50 * MS - interval_ns(HZ60)


@given(st.integers(0, 10**11), st.sampled_from([24_000, 59_940, 60_000, 75_000, 144_000, 240_000]))
def test_dropped_frames_agree_with_exact_fractions(duration, refresh):
    assert dropped_frames(duration, refresh) == max(0, duration * refresh // 10**12 - 1)


# ---- a scripted source -------------------------------------------------------------------------


def test_figures_of_a_scripted_source_are_exact(sink):
    tracer = tracer_of(sink)
    show(tracer, [16.666667] * 10 + [50, 100, 200, 500, 800, 33.4])
    (reading,) = tracer.read()
    frame_ns = 10 * 16_666_667 + (50 + 100 + 200 + 500 + 800) * MS + 33_400_000
    # 50 ms: 3 intervals, 2 dropped; 100: 5; 200: 11; 500: 29; 800: 47; 33.4: 1
    assert reading.figures == FrameFigures(
        refresh_mhz=HZ60,
        frames=16,
        frame_ns=frame_ns,
        drop_level=(12, 1, 1, 1, 1),
        drop_sum=(3, 5, 11, 29, 47),
        late_ns=(50 + 100 + 200 + 500 + 800) * MS + 33_400_000 - 6 * 16_666_667,
        janky_ns=(100 + 200 + 500 + 800) * MS - 4 * 16_666_667,
        frozen=1,
        worst_ns=800 * MS,
    )
    assert reading.figures.dropped == 95
    assert reading.figures.fps == pytest.approx(16e9 / frame_ns)
    assert reading.figures.frozen_share == 1 / 16
    assert reading.figures.hitch_ms_per_s == pytest.approx(1000 * reading.figures.late_ns / frame_ns)


def test_sixty_frames_a_second_are_sixty_and_no_jank(sink):
    tracer = tracer_of(sink)
    show(tracer, [16.666667] * 720)
    (reading,) = tracer.read()
    assert (reading.figures.fps, reading.figures.dropped) == (pytest.approx(60.0, abs=1e-5), 0)
    assert [one.slice.figures.is_janky for one in sink.slices] == [False, False]


def test_a_slice_is_six_seconds_of_frame_time(sink):
    tracer = tracer_of(sink)
    show(tracer, [100] * 60)
    assert len(sink.slices) == 1
    (bad,) = sink.slices
    assert (bad.slice.began_ns, bad.slice.ended_ns) == (0, SLICE_NS)
    assert bad.slice.figures.drop_level == (0, 60, 0, 0, 0)


def test_steady_thirty_on_a_screen_of_sixty_is_slow_and_no_jank(sink):
    tracer = tracer_of(sink)
    show(tracer, [33.4] * 360)
    assert [one.slice.figures.is_janky for one in sink.slices] == [False, False]
    (reading,) = tracer.read()
    assert reading.figures.fps == pytest.approx(29.94, abs=0.01)


def test_a_bad_slice_tells_its_worst_frames_worst_first(sink):
    tracer = tracer_of(sink)
    show(tracer, [16.666667] * 100 + [90, 300, 120, 150] + [16.666667] * 300)
    (bad,) = sink.slices
    assert [round((frame.shown_ns - frame.start_ns) / MS) for frame in bad.worst] == [300, 150, 120]
    assert [frame.dropped for frame in bad.worst] == [17, 8, 6]


def test_a_frozen_frame_alone_is_jank(sink):
    tracer = tracer_of(sink)
    show(tracer, [701])
    tracer.close()
    (bad,) = sink.slices
    assert bad.slice.figures.frozen == 1


def test_a_rate_that_the_screen_has_counts(sink):
    tracer = tracer_of(sink, hertz=120)
    show(tracer, [16.666667] * 4)
    (reading,) = tracer.read()
    assert (reading.figures.dropped, reading.figures.drop_level) == (4, (4, 0, 0, 0, 0))
    assert reading.figures.refresh_hz == 120


def test_another_rate_begins_new_figures_of_the_scene(sink):
    tracer = tracer_of(sink)
    end = show(tracer, [20])
    tracer.at_refresh_rate(30)
    tracer.frame_drawn(end + 33_333_334)
    assert [(one.figures.refresh_hz, one.figures.frames) for one in tracer.read()] == [(60, 1), (30, 1)]


@pytest.mark.parametrize("hertz", [0, -60, float("nan"), float("inf"), "fast", None])
def test_what_is_no_rate_changes_nothing(hertz):
    sink = Sink()
    tracer = tracer_of(sink)
    tracer.at_refresh_rate(hertz)
    show(tracer, [20])
    assert tracer.read()[0].figures.refresh_hz == 60


def test_frames_count_for_their_scene(sink):
    tracer = tracer_of(sink)
    tracer.frame_drawn(0)
    sink.scene_name = "menu"
    tracer.frame_drawn(20 * MS, "Window")
    sink.scene_name = None
    tracer.frame_drawn(40 * MS, "Window")
    tracer.frame_drawn(60 * MS)
    assert [one.scene for one in tracer.read()] == ["menu", "Window", None]


# ---- pauses ------------------------------------------------------------------------------------


def test_waiting_is_no_frame_time_and_blocking_is(sink):
    tracer = tracer_of(sink)
    tracer.frame_drawn(0)
    tracer.waited(10 * MS, 5_010 * MS)
    tracer.frame_drawn(5_020 * MS)
    tracer.waited(5_021 * MS, 5_050 * MS)  # shorter than 100 ms: between the frames of an animation
    tracer.frame_drawn(5_060 * MS)
    (reading,) = tracer.read()
    assert (reading.figures.frame_ns, reading.figures.worst_ns) == (50 * MS, 40 * MS)


def test_after_idleness_the_next_frame_only_starts_the_clock(sink):
    tracer = tracer_of(sink)
    tracer.frame_drawn(0)
    tracer.idle()
    tracer.frame_drawn(9_000 * MS)
    assert tracer.read() == []
    tracer.frame_drawn(9_010 * MS)
    assert tracer.read()[0].figures.frame_ns == 10 * MS


def test_after_a_pause_a_frame_counts_from_its_request(sink):
    tracer = tracer_of(sink)
    tracer.frame(0, 5 * MS)
    tracer.frame(50 * MS, 55 * MS)
    tracer.frame(2_000 * MS, 2_150 * MS)
    (reading,) = tracer.read()
    assert reading.figures.frame_ns == (5 + 50 + 150) * MS


def test_a_clock_that_goes_back_is_no_frame(sink):
    tracer = tracer_of(sink)
    tracer.frame_drawn(100)
    tracer.frame_drawn(50)
    assert tracer.read() == []


# ---- bounds ------------------------------------------------------------------------------------


def test_any_number_of_scenes_takes_a_bounded_place(sink):
    tracer = tracer_of(sink)
    now = 0
    tracer.frame_drawn(now)
    for number in range(1_000):
        now += 20 * MS
        tracer.frame_drawn(now, f"level {number}")
    readings = tracer.read()
    assert len(readings) <= SCENES_MAX + 1
    assert sum(one.figures.frames for one in readings) == 1_000
    assert readings[-1].scene == OTHER_SCENES


@pytest.mark.parametrize("count", [SLICES_MAX - 1, SLICES_MAX, 10 * SLICES_MAX + 7])
def test_slices_of_a_long_session_are_put_together(sink, count):
    tracer = tracer_of(sink)
    end = show(tracer, [3_000, 3_000] * count)
    (reading,) = tracer.read()
    assert len(reading.slices) < SLICES_MAX
    assert reading.slices[0].began_ns == 0
    assert reading.slices[-1].ended_ns == end
    assert sum(part.figures.frames for part in reading.slices) == reading.figures.frames == 2 * count
    assert all(a.ended_ns <= b.began_ns for a, b in zip(reading.slices, reading.slices[1:], strict=False))


@given(st.lists(st.integers(0, 2_000), max_size=300))
def test_levels_and_times_add_up_whatever_is_shown(durations):
    sink = Sink()
    tracer = tracer_of(sink)
    end = show(tracer, [float(one) for one in durations])
    figures = [one.figures for one in tracer.read()]
    assert sum(one.frame_ns for one in figures) == end
    assert sum(sum(one.drop_level) for one in figures) == len(durations)
    dropped = [dropped_frames(one * MS, HZ60) for one in durations]
    assert sum(one.dropped for one in figures) == sum(dropped)
    assert sink.errors == []


def test_a_reader_on_another_thread_sees_whole_figures_only(sink):
    tracer = tracer_of(sink)
    torn: list[FrameFigures] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for reading in tracer.read():
                figures = reading.figures
                if figures.frame_ns != figures.frames * 20 * MS or sum(figures.drop_level) != figures.frames:
                    torn.append(figures)

    reader = threading.Thread(target=read)
    reader.start()
    show(tracer, [20.0] * 50_000)
    stop.set()
    reader.join()
    assert torn == []
    assert tracer.read()[0].figures.frames == 50_000


# ---- listeners ---------------------------------------------------------------------------------


def test_listeners_get_each_frame(sink):
    sink.listening.append("somebody")
    tracer = tracer_of(sink)
    tracer.frame_drawn(0)
    tracer.frame_drawn(100 * MS, "menu")
    (frame,) = sink.frames
    assert (frame.scene, frame.duration_ns, frame.intervals, frame.dropped) == ("menu", 100 * MS, 6, 5)
    assert (frame.expected_ns, frame.shown_ns, frame.level) == (16_666_667, 100 * MS, DropLevel.NORMAL)
