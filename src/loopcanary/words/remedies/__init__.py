"""The ways out of a stall: a table, one line a row. The lookup is `loopcanary.diagnosis.advice`.

Rows and not TOML: loading them takes 2 ms of the watched program's time, and tomllib with the same rows 12 ms.
"""

from __future__ import annotations

from loopcanary.words.remedies.around import AROUND, ELSEWHERE, TASKS
from loopcanary.words.remedies.calls import CALLS
from loopcanary.words.remedies.causes import CAUSES, FRAMEWORKS, TOPICS
from loopcanary.words.remedies.loops import ALIASES, LOOPS, OTHER
from loopcanary.words.remedies.remedy import Remedy, Way

REMEDIES: tuple[Remedy, ...] = (*CALLS, *LOOPS, *CAUSES, *TOPICS, *FRAMEWORKS)

__all__ = ["ALIASES", "AROUND", "ELSEWHERE", "OTHER", "REMEDIES", "TASKS", "Remedy", "Way"]
