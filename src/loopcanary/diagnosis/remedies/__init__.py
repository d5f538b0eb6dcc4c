"""Known blocking calls and what to do instead. Data, split by theme.

To add one, add an entry to the file of its theme and a case to tests/diagnosis/test_remedies.py; the first
entry that fits is taken, so the narrower one stands first.
"""

from __future__ import annotations

from loopcanary.diagnosis.remedies import computing, databases, files, libraries, network, waiting
from loopcanary.diagnosis.remedies.by_cause import (
    BY_CAUSE,
    BY_TOPIC,
    IN_ENDPOINTS,
    IN_GAMES,
    TOPICS_OF_ASYNCIO,
)
from loopcanary.diagnosis.remedies.elsewhere import ELSEWHERE, WAY_OF_CAUSE
from loopcanary.diagnosis.remedies.kinds import Family, Remedy, Way, family_of

REMEDIES: tuple[Remedy, ...] = (
    *databases.REMEDIES,
    *waiting.REMEDIES,
    *libraries.REMEDIES,
    *network.REMEDIES,
    *files.REMEDIES,
    *computing.REMEDIES,
)

__all__ = [
    "BY_CAUSE",
    "BY_TOPIC",
    "ELSEWHERE",
    "IN_ENDPOINTS",
    "IN_GAMES",
    "REMEDIES",
    "TOPICS_OF_ASYNCIO",
    "WAY_OF_CAUSE",
    "Family",
    "Remedy",
    "Way",
    "family_of",
]
