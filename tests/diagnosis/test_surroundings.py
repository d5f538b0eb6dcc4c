"""What the machine did meanwhile."""

from __future__ import annotations

from dataclasses import replace

from tests.diagnosis.cases import MS, evidence, frame, kernel, samples, stack

from loopcanary.diagnosis.ledger import make_surroundings
from loopcanary.model import HostReading, Surroundings

HERE = [stack(frame("handler"))] * 3


def test_nothing_is_said_where_nothing_was_read():
    assert make_surroundings(evidence()) is None


def test_readings_become_shares_of_the_window():
    host = (
        HostReading(
            at_ns=100 * MS,
            process_cpu_ns=50 * MS,
            system_busy_ns=10 * MS,
            system_total_ns=100 * MS,
            system_stolen_ns=4 * MS,
        ),
        HostReading(at_ns=200 * MS, pressure_cpu_ns=7 * MS, throttled_ns=0, memory_available_bytes=9),
        HostReading(
            at_ns=300 * MS,
            process_cpu_ns=350 * MS,
            system_busy_ns=310 * MS,
            system_total_ns=500 * MS,
            system_stolen_ns=64 * MS,
            throttled_ns=80 * MS,
            pressure_cpu_ns=107 * MS,
            memory_available_bytes=5,
            memory_used_bytes=3,
        ),
    )
    assert make_surroundings(evidence(host=host)) == Surroundings(
        window_ns=200 * MS,
        system_cpu=0.75,
        stolen_cpu=0.2,
        process_cpu=1.5,
        throttled_ns=80 * MS,
        pressure_cpu=0.5,
        memory_available_bytes=5,
        memory_used_bytes=3,
    )


def test_the_threads_own_figures_are_those_between_its_samples():
    first = samples(*HERE)[0]
    views = (
        kernel(major_faults=3, voluntary_switches=10),
        kernel(major_faults=5),  # the switches are read with some samples only
        kernel(major_faults=8, voluntary_switches=14, involuntary_switches=2),
    )
    taken = tuple(replace(first, at_ns=first.at_ns + i, kernel=view) for i, view in enumerate(views))
    assert make_surroundings(evidence(taken)) == Surroundings(
        window_ns=0, major_faults=5, voluntary_switches=4, involuntary_switches=2
    )


def test_switches_that_were_read_once_tell_no_difference():
    around = make_surroundings(evidence(samples(*HERE)))
    assert around == Surroundings(window_ns=0, major_faults=0)
