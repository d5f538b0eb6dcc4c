"""A few kinds of the zoo, watched by the engine that is installed here.

On a busy machine too: what the stall physically is must be told. Where the kernel says that the thread had no
CPU for long, cause and duration are the machine's as well, and the score leaves them out.
"""

from __future__ import annotations

import pytest
from tests.zoo.judging import assert_told_as_it_is
from zoo import catalogue

KINDS = (
    "sleep", "regex", "lock_held", "http_request", "subprocess_run",
    "thread_with_loop", "hang_c_call", "ok_idle",
)  # fmt: skip


@pytest.mark.native
@pytest.mark.parametrize("name", KINDS)
def test_the_stall_is_reported_as_it_is(name):
    assert_told_as_it_is(catalogue.KINDS / f"{name}.py", "asyncio")
