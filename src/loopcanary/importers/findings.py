"""What a monitor found wrong, as an issue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loopcanary.importers.ownership import JavaOwnership
from loopcanary.importers.verdicts import culprit_of
from loopcanary.model import ImportedFinding, WeightedStack
from loopcanary.protocols.imports import SeenFinding
from loopcanary.words.android import LOOPER
from loopcanary.words.findings import advice_on, finding_words

_FRAMES_MAX = 200
_COUNT_MAX = 1 << 50


def finding_of(
    seen: SeenFinding, own: JavaOwnership, *, issue_id: str, session: str, began_wall_ns: int
) -> ImportedFinding:
    """The issue, without its fingerprint."""
    frames = tuple(own.frame(place) for place in seen.frames[:_FRAMES_MAX])
    truncated = len(seen.frames) > _FRAMES_MAX
    stack = WeightedStack(weight_ns=seen.duration_ns, frames=frames, truncated=truncated)
    stacks = (stack,) if frames else ()
    figures: dict[str, Any] = {name: min(count, _COUNT_MAX) for name, count in seen.figures.items()}
    issue = ImportedFinding(
        id=issue_id,
        session=session,
        thread=seen.thread,
        loop=LOOPER,
        scene=seen.scene,
        began_wall_ns=began_wall_ns,
        duration_ns=seen.duration_ns,
        culprit=culprit_of(stacks)[0],
        advice=seen.advice or advice_on(seen.rule),
        stacks=stacks,
        rule=seen.rule,
        at=seen.at,
        **figures,
    )
    return replace(issue, title=finding_words(issue))
