"""Kinds of the zoo on trio, and controls."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.zoo.judging import assert_told_as_it_is
from zoo import catalogue

KINDS = (
    "sleep", "python_loop", "regex", "json_loads", "lock_held", "thread_join", "queue_get", "future_result",
    "subprocess_run", "gc_explicit", "gil_hog_in_c", "import_in_handler", "socket_recv",
)  # fmt: skip
CONTROL = Path(__file__).parent / "ok_trio.py"


@pytest.mark.parametrize("name", KINDS)
def test_the_stall_is_reported_as_it_is(name):
    assert_told_as_it_is(catalogue.KINDS / f"{name}.py", "trio")


def test_a_program_that_does_not_stall_has_no_report():
    assert_told_as_it_is(CONTROL, "trio")
