"""What each test costs: CPU seconds of the test's process and of the programs that it started and waited for.

Wall time depends on the neighbours, these figures hardly; their sum, over the cores, is the least that a run
can take. They become properties in a junit file; tools/test_times.py adds them up.
"""

from __future__ import annotations

import os

import pytest

_began_s = [0.0]


def _cpu_s() -> float:
    """CPU seconds of this process and of its children that were waited for, up to now."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart() -> None:
    _began_s[:] = [_cpu_s()]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "teardown":
        item.user_properties.append(("cpu_s", f"{_cpu_s() - _began_s[0]:.2f}"))
