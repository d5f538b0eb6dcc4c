"""How long stalls are kept, in tests of stores."""

from __future__ import annotations

import dataclasses
import time

from tests.building.stalls import STALL, S

from loopcanary.model import Stall
from loopcanary.store import Retention

DAY = 86_400 * S
AGE = Retention(age_ns=3 * DAY)
"""STALL is older."""


def young() -> Stall:
    """One that is kept, and shows that the clock is right."""
    return dataclasses.replace(
        STALL, id="young", session="s2", fingerprint="5:9", began_wall_ns=time.time_ns() - 2 * DAY
    )
