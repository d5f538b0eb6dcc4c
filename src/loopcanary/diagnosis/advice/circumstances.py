"""Finds what advice goes by in a judged stall."""

from __future__ import annotations

import re
from heapq import nlargest
from operator import itemgetter

from loopcanary.diagnosis.advice.growing import is_growing_text
from loopcanary.diagnosis.advice.holding import find_block
from loopcanary.diagnosis.advice.plain import find_plain
from loopcanary.diagnosis.advice.setting import ABOUT_NO_CALL, Setting
from loopcanary.diagnosis.case import StallCase
from loopcanary.diagnosis.causes.native import QUICK_CALLS
from loopcanary.diagnosis.causes.sleep import SLEEPING_CALLS
from loopcanary.diagnosis.causes.verdict import Finding, Verdict
from loopcanary.diagnosis.code.call_sites import callee_of
from loopcanary.diagnosis.code.code_paths import CodePaths
from loopcanary.diagnosis.code.imported import imported_files
from loopcanary.diagnosis.code.ownership import module_name
from loopcanary.diagnosis.code.stack_frames import Placed
from loopcanary.diagnosis.culprit.polling import Polling
from loopcanary.diagnosis.culprit.suspect import Suspect
from loopcanary.diagnosis.samples.marks import last_name, released_gil
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import weigh_stacks
from loopcanary.diagnosis.title import short_place
from loopcanary.model import Blocker, Cause, GilState
from loopcanary.model.loop_frames import tail
from loopcanary.model.waiting import THREAD_END

_HITS_MAX = 32
"""Of the culprit's frames, the heaviest say where its time went."""
_MADE_BY = r"\b{name} *(?::[^=]+)?= *([\w.]+)\("
_LOGGING = "logging/__init__.py"
_CLOCK = re.compile(r"while\b.*\b(?:time|monotonic|perf_counter)(?:_ns)?\(\)")


def find_setting(
    case: StallCase,
    verdict: Verdict,
    suspect: Suspect | None,
    blocker: Blocker | None,
    polling: Polling | None,
) -> Setting:
    """What advice goes by. `suspect`, `blocker`: as the stall names them."""
    observation, finding = case.observation, verdict.first
    call = None if blocker is None else blocker.call
    above = () if suspect is None else _above(observation, suspect)
    topic, values = _about_holder(observation, finding)
    if polling is not None:
        topic = "polling"
    return Setting(
        loop=case.evidence.loop_kind,
        topic=topic or _topic(case, verdict, suspect, blocker, above),
        reached=_reached(suspect, case.paths),
        origin=_origin(observation, suspect, None if call is None else callee_of(call)),
        within=_within(case),
        released_gil=None if verdict.cause is not Cause.NATIVE_CPU else _released_gil(finding),
        plain=find_plain(suspect.view, above, observation.sites) if suspect and suspect.in_app else None,
        values=values,
    )


def _above(observation: Observation, suspect: Suspect) -> Placed:
    """The frames of the work that called the culprit, innermost first, in the heaviest stack that has it."""
    for stack, _ in sorted(weigh_stacks(observation.seen), key=itemgetter(1), reverse=True):
        work = stack.work
        if suspect.view in work:
            return work[work.index(suspect.view) + 1 :]
    return ()


def _reached(suspect: Suspect | None, paths: CodePaths) -> dict[tuple[str, ...], int]:
    """Modules of the frames below the culprit, its own where it is a package's; and the time spent there."""
    reached: dict[tuple[str, ...], int] = {}
    if suspect is None:
        return reached
    outer = () if suspect.in_app else (suspect.view.function.file,)
    for _, below, weight in nlargest(_HITS_MAX, suspect.hits, key=itemgetter(2)):
        files = dict.fromkeys((*outer, *(view.function.file for view in reversed(below))))
        modules = tuple(module_name(file, paths) for file in files)
        reached[modules] = reached.get(modules, 0) + weight
    return reached


def _within(case: StallCase) -> frozenset[str]:
    """The packages that the samples' stacks lead through: a framework, say."""
    paths = {seen.view.stack.path for seen in case.observation.seen}
    files = {function.file for function in set().union(*[path.whole for path in paths])}
    return frozenset([module_name(file, case.paths).partition(".")[0] for file in files])


def _origin(observation: Observation, suspect: Suspect | None, callee: str | None) -> str | None:
    """What made the receiver of a call, if that is a variable of its function: `future.result()` after
    `future = pool.submit(...)`."""
    receiver = "" if callee is None else callee.rpartition(".")[0]
    if suspect is None or not receiver.isidentifier():
        return None
    made_by = re.compile(_MADE_BY.format(name=receiver))
    found = [made_by.search(line) for line in observation.sites.lines_before(suspect.view)]
    return next((match[1] for match in reversed(found) if match is not None), None)


def _released_gil(finding: Finding | None) -> bool | None:
    explained = () if finding is None else finding.explained
    known = [seen for seen in explained if seen.sample.gil is not GilState.UNKNOWN]
    return 2 * sum(map(released_gil, known)) > len(known) if known else None


def _about_holder(observation: Observation, finding: Finding | None) -> tuple[str | None, dict[str, object]]:
    """The topic of the verdict, as what is known of the holder makes it; and the holder's words."""
    topic = None if finding is None else finding.topic
    if finding is None or not finding.holders:
        return topic, {}
    holder = finding.holders[0]
    if holder.lock == THREAD_END:
        return "thread-runs", {}
    culprit = holder.culprit
    if culprit is None:
        return topic, {}
    values: dict[str, object] = {
        "holder": culprit.function,
        "at": f"({short_place(culprit.file, culprit.line)})",
    }
    block = find_block(observation, finding.explained) if topic == "held-lock" else None
    if block is None:
        return topic, values
    return "held-block", {
        "holder": block.function,
        "at": f"({block.at})",
        "slow": block.slow,
        "block": block.header,
    }


def _topic(
    case: StallCase, verdict: Verdict, suspect: Suspect | None, blocker: Blocker | None, above: Placed
) -> str | None:
    """What the code around says beyond the cause."""
    observation, cause = case.observation, verdict.cause
    if cause in ABOUT_NO_CALL:
        return None
    if verdict.first is not None and verdict.first.title == "freeing":
        return "freed-by-task"
    if suspect is None:
        return None
    if any(tail(view.function.file) == _LOGGING for view in above):
        return "log-handler"
    call = None if blocker is None else blocker.call
    if cause is Cause.SLEEP:
        callee = None if call is None else callee_of(call)
        return None if callee is None or last_name(callee) in SLEEPING_CALLS else "sleeps-inside"
    if cause is Cause.CPU:
        return _topic_of_loop(observation, suspect)
    if cause is Cause.NATIVE_CPU and blocker is not None and blocker.function is None and call is not None:
        return "frees-on-return" if _calls_python(case, suspect, callee_of(call)) else None
    return None


def _calls_python(case: StallCase, suspect: Suspect, callee: str | None) -> bool:
    """Whether a call is that of a Python function: one that other samples found below it, or that the program
    has in the culprit's file or where the call's name was imported from."""
    sites, name = case.observation.sites, last_name(callee)
    if callee is None or not name:
        return False
    if any(
        below and below[-1].shown.function == name and sites.of(view).callee == callee
        for view, below, _ in suspect.hits
    ):
        return True
    file = suspect.view.function.file
    imported = imported_files(sites.lines_of(file), file, callee, case.paths)
    return any(sites.defines(one, name) for one in (file, *imported))


def _topic_of_loop(observation: Observation, suspect: Suspect) -> str | None:
    site, blocks = observation.sites.of(suspect.view), observation.sites.blocks(suspect.view)
    line = site.source or ""
    if _CLOCK.match(line):
        return "busy-wait"
    if is_growing_text(suspect, observation.sites):
        return "growing-text"
    header = blocks[0][1] if blocks else ""
    tried = line.startswith("try:") or header.startswith("try:")
    failed = line.startswith("except") or header.startswith("except")
    return "tried" if failed or (tried and last_name(site.callee) in QUICK_CALLS) else None
