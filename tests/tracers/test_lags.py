"""Input and idle work of scripted sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.model.config import REQUESTS_ONE_OF
from loopcanary.model.figures import bucket_of, quantile_ns, upper_ns
from loopcanary.tracers.idle import NAMES_MAX, IdleTracer
from loopcanary.tracers.input import InputTracer
from loopcanary.words.frames import input_words

MS = 1_000_000


@dataclass
class Sink:
    lags: list[Any] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    def scene(self) -> str | None:
        return None

    def lagged(self, lag: Any) -> None:
        self.lags.append(lag)

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


def test_requests_are_timed_as_often_by_every_part():
    header = Path(__file__).parents[2] / "native/core/answers/answers.h"
    assert f"#define LC_ANSWERS_ONE_OF {REQUESTS_ONE_OF}u\n" in header.read_text()


def test_figures_say_how_many_were_timed():
    trace = InputTracer(Sink(), thread="main", loop="requests", one_of=16)
    trace.handled("GET /", 0, MS, 2 * MS)
    assert trace.read().is_sampled
    said = "1 of some 16 requests timed: p50 2.00 ms, p98 2.00 ms, slowest of these 2.00 ms (GET /)"
    assert input_words(trace.read()) == f"{said}; 50 % of it waiting"


@given(st.integers(0, 2**62))
def test_a_bucket_is_a_sixteenth_wide_at_most(ns):
    bucket = bucket_of(ns)
    assert ns <= upper_ns(bucket) <= ns + ns // 16
    assert bucket == 0 or upper_ns(bucket - 1) < ns


def test_quantiles_are_of_all_that_was_counted():
    counts = {bucket_of(ns): 1 for ns in (1, 2, 3, 4)}
    assert [quantile_ns(counts, share) for share in (0.0, 0.25, 0.5, 0.51, 1.0)] == [1, 1, 2, 3, 4]
    assert quantile_ns({}, 0.5) == 0


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.sampled_from([50, 98]))
def test_a_quantile_is_a_sixteenth_too_large_at_most(lags, percent):
    counts: dict[int, int] = {}
    for lag in lags:
        counts[bucket_of(lag)] = counts.get(bucket_of(lag), 0) + 1
    rank = -(-len(lags) * percent // 100)
    exact = sorted(lags)[rank - 1]
    assert exact <= quantile_ns(counts, percent / 100) <= exact + exact // 16


def test_input_counts_from_arrival_to_the_end_of_its_handling():
    sink = Sink()
    tracer = InputTracer(sink, thread="MainThread", loop="qt")
    for number in range(99):
        tracer.handled("key", number * 100 * MS, number * 100 * MS + MS, number * 100 * MS + 4 * MS)
    tracer.handled("click", 20_000 * MS, 20_150 * MS, 20_190 * MS)
    reading = tracer.read()
    assert (reading.events, reading.worst_ns, reading.worst) == (100, 190 * MS, "click")
    assert 4 * MS <= reading.p50_ns <= 4 * MS * 17 // 16
    assert 4 * MS <= reading.p98_ns <= 4 * MS * 17 // 16
    assert reading.lag_ns == 99 * 4 * MS + 190 * MS
    assert reading.queued_ns == 99 * MS + 150 * MS
    assert sink.lags == []
    assert sink.errors == []


def test_late_input_tells_what_was_handled_while_it_waited():
    sink = Sink()
    tracer = InputTracer(sink, thread="MainThread", loop="qt")
    tracer.handled("paint", 0, 0, 50 * MS)
    tracer.handled("menu", 90 * MS, 100 * MS, 280 * MS)
    tracer.handled("click", 120 * MS, 280 * MS, 330 * MS)
    (lag,) = sink.lags
    assert (lag.name, lag.arrived_ns, lag.begin_ns, lag.end_ns) == ("click", 120 * MS, 280 * MS, 330 * MS)
    assert [one.name for one in lag.before] == ["menu"]


def test_two_hundred_milliseconds_are_still_good():
    sink = Sink()
    tracer = InputTracer(sink, thread="MainThread", loop="qt")
    tracer.handled("click", 0, 0, 200 * MS)
    assert sink.lags == []
    tracer.handled("click", 0, 0, 200 * MS + 1)
    assert len(sink.lags) == 1


@pytest.mark.parametrize("arrived", [1_000 * MS, -4_000_000 * MS])
def test_a_stamp_of_another_clock_is_no_lag(arrived):
    sink = Sink()
    tracer = InputTracer(sink, thread="MainThread", loop="qt")
    tracer.handled("click", arrived, 10 * MS, 20 * MS)
    assert (tracer.read().events, sink.lags, sink.errors) == (0, [], [])


def test_idle_work_of_two_seconds_is_an_issue():
    sink = Sink()
    tracer = IdleTracer(sink, thread="MainThread", loop="tk")
    tracer.ran("thumbnails", 0, 30 * MS)
    tracer.ran("index", 0, 2_000 * MS)
    tracer.ran("thumbnails", 100 * MS, 110 * MS)
    assert sink.lags == []
    tracer.ran("index", 3_000 * MS, 5_000 * MS + 1)
    assert [(one.name, one.runs, one.longest_ns) for one in tracer.read()] == [
        ("index", 2, 2_000 * MS + 1),
        ("thumbnails", 2, 30 * MS),
    ]
    (lag,) = sink.lags
    assert (lag.name, lag.end_ns - lag.begin_ns, lag.runs) == ("index", 2_000 * MS + 1, 1)


def test_spinning_work_is_an_issue_with_its_rounds():
    sink = Sink()
    tracer = IdleTracer(sink, thread="MainThread", loop="asyncio")
    tracer.spun("poll", 0, 900 * MS, 9_000)
    tracer.spun("poll", 900 * MS, 2_000 * MS, 11_000)
    (lag,) = sink.lags
    assert (lag.name, lag.runs) == ("poll", 11_000)
    (reading,) = tracer.read()
    assert (reading.runs, reading.spun_ns) == (20_000, 2_000 * MS)


def test_a_spin_that_grows_is_counted_once():
    sink = Sink()
    tracer = IdleTracer(sink, thread="MainThread", loop="asyncio")
    for seconds in (2, 3, 5):
        tracer.spun("poll", 7, 7 + seconds * 1_000 * MS, seconds * 10)
    tracer.spun("poll", 9_000 * MS, 11_000 * MS, 20)
    assert [lag.runs for lag in sink.lags] == [20, 30, 50, 20]
    (reading,) = tracer.read()
    assert (reading.runs, reading.spun_ns, reading.total_ns) == (70, 7_000 * MS, 7_000 * MS)


def test_any_number_of_names_takes_a_bounded_place():
    sink = Sink()
    tracer = IdleTracer(sink, thread="MainThread", loop="tk")
    for number in range(1_000):
        tracer.ran(f"after#{number}", 0, MS)
    readings = tracer.read()
    assert len(readings) == NAMES_MAX + 1
    assert sum(one.runs for one in readings) == 1_000
