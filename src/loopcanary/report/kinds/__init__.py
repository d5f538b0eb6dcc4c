"""What each kind of issue says that others have not: figures among its facts, parts after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopcanary.model import IssueKind
from loopcanary.report.kinds import jank, lags, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loopcanary.document.parts import Block, Facts

    Figures = Callable[[Any], Facts]
    Parts = Callable[[Any], tuple[Block, ...]]

FIGURES: Mapping[IssueKind, Figures] = {
    IssueKind.JANK: jank.figures,
    IssueKind.INPUT: lags.input_figures,
    IssueKind.IDLE: lags.idle_figures,
    IssueKind.STARTUP: traced.start_figures,
    IssueKind.SLOW_METHOD: traced.method_figures,
}
PARTS: Mapping[IssueKind, Parts] = {
    IssueKind.JANK: jank.parts,
    IssueKind.INPUT: lags.input_parts,
    IssueKind.STARTUP: traced.start_parts,
    IssueKind.SLOW_METHOD: traced.method_parts,
}
