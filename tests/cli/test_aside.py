"""What a keeper does that a program has started."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="there are no priorities here")

LOWERED = """
import os
from loopcanary.cli.aside import _lower_priority
os.setpriority(os.PRIO_PROCESS, 0, {before})
_lower_priority()
print(os.getpriority(os.PRIO_PROCESS, 0))
"""


@pytest.mark.parametrize(("before", "after"), [(1, 10), (10, 10), (15, 15)])
def test_its_priority_is_low(before, after):
    # The tests may run with a lower one, and may not raise it.
    text = LOWERED.format(before=f"max({before}, os.getpriority(os.PRIO_PROCESS, 0))")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= after
