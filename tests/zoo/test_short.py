"""A few kinds of the zoo, watched by the engine that is installed here.

On a busy machine too: what the stall physically is must be told. Where the kernel says that the thread had no
CPU for long, cause and duration are the machine's as well, and the score leaves them out.
"""

from __future__ import annotations

import pytest
from zoo import catalogue, page, trial

KINDS = (
    "sleep", "regex", "lock_held", "http_request", "subprocess_run",
    "thread_with_loop", "hang_c_call", "ok_idle",
)  # fmt: skip


@pytest.mark.native
@pytest.mark.parametrize("name", KINDS)
def test_the_stall_is_told_as_it_is(name):
    kind = catalogue.read(catalogue.KINDS / f"{name}.py")
    played = trial.play(kind, "loopcanary", "asyncio")
    assert played.outcome == "played", played.note
    assert page.misses([played], [kind]) == []
