"""The ways out of a stall: a table, one line a row. The lookup is `loopcanary.diagnosis.advice`.

Here are the rows of what no package brings: the language, its standard library, loops, causes. They are needed by
every judgement, and Python loads them in a sixth of the time that TOML takes. Rows of packages are in
`loopcanary.words.libraries`.
"""

from __future__ import annotations

from loopcanary.words.remedies.around import AROUND, ELSEWHERE, TASKS
from loopcanary.words.remedies.calls import CALLS
from loopcanary.words.remedies.causes import CAUSES, TOPICS
from loopcanary.words.remedies.loops import ALIASES, LOOPS, OTHER
from loopcanary.words.remedies.remedy import Needs, Remedy, Way

REMEDIES: tuple[Remedy, ...] = (*CALLS, *LOOPS, *CAUSES, *TOPICS)

__all__ = ["ALIASES", "AROUND", "ELSEWHERE", "OTHER", "REMEDIES", "TASKS", "Needs", "Remedy", "Way"]
