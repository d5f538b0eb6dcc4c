"""Whether the culprit can await, and if not, who above it can."""

from __future__ import annotations

import ast
import re

from loopcanary.diagnosis.advice.setting import Plain
from loopcanary.diagnosis.code.call_sites import CallSites
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.parsing import expression
from loopcanary.diagnosis.code.stack_frames import Placed, PlacedFrame
from loopcanary.diagnosis.title import short_place

_OF_FUNCTION = 0x1
"""CO_OPTIMIZED: set for every function, so that 0 means not known, or a module."""
_AWAITS = 0x80 | 0x200
"""CO_COROUTINE, CO_ASYNC_GENERATOR."""
_HANDED_MAX = 60


def find_plain(culprit: PlacedFrame, above: Placed, sites: CallSites) -> Plain | None:
    """None where the culprit can await or it is not known. `above`: the frames of the work that called it,
    innermost first."""
    own = [view for view in (culprit, *above) if view.function is culprit.function]
    # A comprehension has a frame of its own before 3.12, and awaits if its function does.
    if any(map(_can_await, own)) or not any(view.frame.code_flags & _OF_FUNCTION for view in own):
        return None
    function = culprit.function.name
    callers = [view for view in above if view.function is not culprit.function]
    index = next((index for index, view in enumerate(callers) if _can_await(view)), None)
    coroutine = None if index is None else callers[index]
    between = [culprit, *callers[:index]]
    if coroutine is None or coroutine.owner is not Owner.OWN or any(map(_is_destructor, between)):
        called_back = [view.function.name for view in between if view.owner is Owner.OWN][-1]
        return Plain(function=called_back)
    return Plain(
        function=function,
        may_await=_may_await(function, callers[:index], sites.of(callers[0]).text or ""),
        has_callers=bool(index),
        coroutine=coroutine.function.name,
        at=short_place(coroutine.shown.file, coroutine.shown.line),
        is_repeated=_is_repeated(sites.loop_around(coroutine)),
        handed=_handed(sites.of(coroutine).text),
    )


def _can_await(view: PlacedFrame) -> bool:
    return bool(view.frame.code_flags & _AWAITS)


def _may_await(function: str, callers: list[PlacedFrame], call: str) -> bool:
    """Whether it can be made an `async def`. `callers`: those below the coroutine, which would become one as
    well; `call`: the text of the first one's call."""
    if function.startswith(("<", "__")) or any(view.owner is not Owner.OWN for view in callers):
        return False
    # Its caller may hand it to what calls it: `sorted(rows, key=score)`.
    return re.search(rf"[(,= ]{re.escape(function)}\b(?!\()", call) is None


def _is_repeated(loop: tuple[str, ...]) -> bool:
    """Whether a loop repeats the call within one stall: one that awaits lets the loop run in between."""
    return bool(loop) and re.search(r"\bawait\b|\basync (?:for|with)\b", "\n".join(loop)) is None


def _is_destructor(view: PlacedFrame) -> bool:
    return view.function.name == "__del__"


def _handed(text: str | None) -> str | None:
    """`load(path, deep=True)` -> `partial(load, path, deep=True)`: not every executor takes keywords."""
    try:
        call = None if text is None else expression(text)
    except (SyntaxError, ValueError):
        return None
    if text is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name | ast.Attribute):
        return None
    parts = [ast.get_source_segment(text, part) or "..." for part in (call.func, *call.args, *call.keywords)]
    handed = ", ".join(parts)
    if len(handed) > _HANDED_MAX:
        return f"{parts[0]}, ..."
    return f"partial({handed})" if call.keywords else handed
