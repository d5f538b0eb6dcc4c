"""Finds what advice goes by in a judged stall."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from heapq import nlargest
from itertools import pairwise
from operator import itemgetter

from loopcanary.diagnosis.advice import ABOUT_NO_CALL, Plain, Setting
from loopcanary.diagnosis.case import StallCase
from loopcanary.diagnosis.causes.computing import QUICK_CALLS
from loopcanary.diagnosis.causes.verdict import Finding, Verdict
from loopcanary.diagnosis.causes.waits import SLEEPING_CALLS, Polling
from loopcanary.diagnosis.code.call_sites import CallSites, callee_of, header_end
from loopcanary.diagnosis.code.ownership import CodePaths, Owner, module_name
from loopcanary.diagnosis.code.stack_frames import NO_STACK, Function, Placed, PlacedFrame
from loopcanary.diagnosis.code.syntax import expression, statement
from loopcanary.diagnosis.culprit.first_use import imported_files, imported_name
from loopcanary.diagnosis.culprit.suspect import STEADY_SHARE, Suspect
from loopcanary.diagnosis.samples.marks import last_name, released_gil
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample, weigh_stacks
from loopcanary.diagnosis.title import short_place
from loopcanary.late_dataclass import dataclass
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
    """The facts by which advice is chosen. `suspect`, `blocker`: as the stall names them."""
    observation, finding = case.observation, verdict.first
    callee = None if blocker is None or blocker.call is None else callee_of(blocker.call)
    above = () if suspect is None else _above(observation, suspect)
    origin = _origin(observation, suspect, callee)
    topic, values = _about_holder(observation, finding)
    if polling is not None:
        topic = "polling"
    if topic is None and suspect is not None and verdict.cause not in ABOUT_NO_CALL:
        topic, call = _misplaced(observation, suspect)
        values |= {} if call is None else {"call": call}
    topic = topic or _topic(case, verdict, suspect, blocker, above)
    if topic == "many-yields" and suspect is not None:
        values["holder"] = suspect.view.function.name
    return Setting(
        loop=case.evidence.loop_kind,
        topic=topic,
        reached=_reached(suspect, case.paths),
        passed=_passed(case, suspect),
        called=_called((suspect.view, *above), case.paths) if suspect else frozenset(),
        callee=_full_name(observation, suspect, callee),
        origin=_full_name(observation, suspect, origin) or origin,
        within=_within(case),
        endpoint=_endpoint(observation, suspect),
        released_gil=None if verdict.cause is not Cause.NATIVE_CPU else _released_gil(finding),
        is_foreign=suspect is None or not suspect.in_app,
        is_awaited=suspect is not None and _awaits_packages(suspect),
        calls_back=suspect is not None and callee is not None and _calls_back(suspect, callee),
        plain=find_plain(suspect.view, above, observation.sites) if suspect and suspect.in_app else None,
        values=values,
    )


def _above(observation: Observation, suspect: Suspect) -> Placed:
    """The frames of the work that called the culprit, innermost first, in the heaviest stack that has it."""
    work = _work(observation, suspect)
    return work[work.index(suspect.view) + 1 :] if work else ()


def _work(observation: Observation, suspect: Suspect) -> Placed:
    """The frames of the work in the heaviest stack that has the culprit."""
    for stack, _ in sorted(weigh_stacks(observation.seen), key=itemgetter(1), reverse=True):
        work = stack.work
        if suspect.view in work:
            return work
    return ()


def _reached(suspect: Suspect | None, paths: CodePaths) -> dict[tuple[str, ...], int]:
    """Modules of the frames below the culprit, its own where it is a package's; and the time spent there."""
    reached: dict[tuple[str, ...], int] = {}
    if suspect is None:
        return reached
    outer = () if suspect.in_app else (suspect.view.function.file,)
    for _, below, weight in nlargest(_HITS_MAX, suspect.hits, key=itemgetter(2)):
        packages = [view for view in reversed(below) if view.owner not in (Owner.OWN, Owner.SYNTHETIC)]
        files = dict.fromkeys((*outer, *(view.function.file for view in packages)))
        modules = tuple(module_name(file, paths) for file in files)
        reached[modules] = reached.get(modules, 0) + weight
    return reached


def _places(function: Function, paths: CodePaths) -> set[str]:
    """`a`, `a.b` and `a.b:Class.function`."""
    module = module_name(function.file, paths)
    return {module.partition(".")[0], module, f"{module}:{function.qualname}"}


def _called(views: Placed, paths: CodePaths) -> frozenset[tuple[str, str]]:
    """Names of functions, and the places of what called them."""
    pairs = pairwise(dict.fromkeys(view.function for view in views))
    return frozenset((inner.name, place) for inner, outer in pairs for place in _places(outer, paths))


def _passed(case: StallCase, suspect: Suspect | None) -> dict[str, float]:
    """The places of packages below the culprit and the share of its time there; of all the work where the
    culprit is a package's. What ran without code of the program is the culprit's too if it is the most: the
    greenlet in which a package does what is awaited (SQLAlchemy)."""
    if suspect is None:
        return {}
    stacks: list[tuple[Placed, int]] = [(below, weight) for _, below, weight in suspect.hits]
    work = [(stack.work, weight) for stack, weight in weigh_stacks(case.observation.seen)]
    if not suspect.in_app:
        stacks = work
    else:
        apart = [one for one in work if all(view.owner is not Owner.OWN for view in one[0])]
        if sum(weight for _, weight in apart) > suspect.weight_ns:
            stacks += apart
    held: dict[frozenset[Function], int] = {}
    for below, weight in stacks:
        packages = [view.function for view in below if view.owner not in (Owner.OWN, Owner.SYNTHETIC)]
        held[frozenset(packages)] = held.get(frozenset(packages), 0) + weight
    known = {function: _places(function, case.paths) for function in frozenset().union(*held)}
    total, passed = max(1, sum(held.values())), dict[str, float]()
    for functions, weight in held.items():
        for place in set().union(*[known[function] for function in functions]):
            passed[place] = passed.get(place, 0.0) + weight / total
    return passed


def _awaits_packages(suspect: Suspect) -> bool:
    """Whether most of the culprit's time was in a coroutine that it awaited: a package's, since it is the
    innermost of the program's own."""
    awaited = sum(weight for _, below, weight in suspect.hits if below and _can_await(below[-1]))
    return 2 * awaited > suspect.weight_ns


def _full_name(observation: Observation, suspect: Suspect | None, name: str | None) -> str | None:
    """A name as the imports of the culprit's file have it; None: they do not."""
    if suspect is None or name is None:
        return None
    return imported_name(observation.sites.lines_of(suspect.view.function.file), name)


_HANDS_OVER = re.compile(
    r"(?:\b(?:Thread|Process|Timer)\((?:[^()]*, ?)?(?:target|function) ?= ?"
    r"|(?:[Ee]xecutor|[Pp]ool)\w*\.submit\("
    r"|\.(?:clicked|triggered|timeout|started|finished)\.connect\("
    r"|\b(?:to_thread|run_sync|idle_add|call_soon|call_soon_threadsafe)\("
    r"|\b(?:run_in_executor|after|after_idle|singleShot|timeout_add|call_later)\([^,()]+, ?)$"
)
"""What a function is given to, and not its result, before where that stands."""


def _is_moved(lines: tuple[str, ...], name: str) -> bool:
    return any(f"{name}.moveToThread(" in line for line in lines)


def _misplaced(observation: Observation, suspect: Suspect) -> tuple[str | None, str | None]:
    """The topic of a call of the program that runs here and was meant to run elsewhere, and its text."""
    is_qt = observation.evidence.loop_kind.lower().startswith(("qt", "pyqt", "pyside"))
    sites, work = observation.sites, _work(observation, suspect)
    for called, view in pairwise(work):
        site = sites.of(view)
        if view.owner is not Owner.OWN or site.text is None or site.callee is None:
            continue
        receiver, _, name = site.callee.rpartition(".")
        before = (site.source or "")[: max(0, site.column - 1)]
        if site.column and not _can_await(called) and _HANDS_OVER.search(before):
            return "handed-result", site.text
        if receiver and is_qt and _is_moved(sites.lines_of(view.function.file), receiver):
            return "slot-called", site.text
        kind = called.function.qualname.rpartition(".")[0]
        begun = re.compile(rf"class {re.escape(kind)}\(.*\bQ?Thread\b")
        if name == "run" and kind and any(map(begun.search, sites.lines_of(called.function.file))):
            return "run-called", site.text
    return None, None


def _within(case: StallCase) -> frozenset[str]:
    """The packages that the samples' stacks lead through: a framework, say."""
    paths = {seen.view.stack.path for seen in case.observation.seen}
    files = {function.file for function in set().union(*[path.whole for path in paths])}
    return frozenset([module_name(file, case.paths).partition(".")[0] for file in files])


_CALL_ENDPOINTS = {
    "fastapi/routing.py": ("run_endpoint_function", "fastapi"),
    "fastapi/dependencies/utils.py": ("solve_dependencies", "fastapi"),
    "starlette/routing.py": ("app", "starlette"),
}
"""By file, the function that calls an endpoint, and its framework."""


def _endpoint(observation: Observation, suspect: Suspect | None) -> str | None:
    """The framework that called a coroutine of the program as an endpoint or dependency, in the culprit's
    heaviest stack; None also where it called a package's decorator."""
    work = () if suspect is None else _work(observation, suspect)
    for view, caller in pairwise(work):
        function, framework = _CALL_ENDPOINTS.get(tail(caller.function.file), ("", None))
        if caller.function.name == function:
            return framework if view.owner is Owner.OWN and _can_await(view) else None
    return None


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
        return topic, {} if finding is None else dict(finding.values)
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
    """What the code around the call says beyond the cause."""
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
    if cause in (Cause.DNS, Cause.SUBPROCESS, Cause.DISK_IO):
        return "waits-inside" if _leads_away(suspect, call) else None
    if cause is Cause.CPU and (topic := _topic_of_loop(observation, suspect)) is not None:
        return topic
    if cause in (Cause.CPU, Cause.NATIVE_CPU) and (topic := _topic_of_many(case, suspect, call)) is not None:
        return topic
    if cause is Cause.NATIVE_CPU and blocker is not None and blocker.function is None and call is not None:
        return "frees-on-return" if _calls_python(case, suspect, callee_of(call)) else None
    return _topic_of_package(suspect) if cause is Cause.CPU and _leads_away(suspect, call) else None


def _topic_of_many(case: StallCase, suspect: Suspect, call: str | None) -> str | None:
    """What a loop of the culprit repeats, as samples prove."""
    returns = _returns(case, suspect)
    if returns < _RETURNS:
        return None
    if _yields(suspect, case.observation.sites):
        return "many-yields"
    each_is_short = suspect.weight_ns < case.evidence.threshold_ns * (returns + 1)
    return "many-calls" if call is not None and each_is_short else None


def _leads_away(suspect: Suspect, call: str | None) -> bool:
    """Whether a call of the culprit led to a package's code, where most of its time went."""
    if not suspect.in_app or call is None or callee_of(call) is None:
        return False
    inside = sum(weight for _, below, weight in suspect.hits if below and below[-1].owner is Owner.INSTALLED)
    return inside >= _MOST * suspect.weight_ns


def _topic_of_package(suspect: Suspect) -> str:
    """What computes is a package's: the making of an object, or any other call."""
    return "makes-inside" if _share_below(suspect, {"__init__", "__new__"}) >= _MOST else "computes-inside"


def _share_below(suspect: Suspect, names: Collection[str]) -> float:
    """The share of the culprit's time in which it had called Python functions of these names."""
    held = sum(weight for _, below, weight in suspect.hits if below and below[-1].shown.function in names)
    return held / max(1, suspect.weight_ns)


def _calls_back(suspect: Suspect, callee: str) -> bool:
    """Whether the call is of C code that calls Python code of other names."""
    below = {below[-1].shown.function for _, below, _ in suspect.hits if below}
    return _share_below(suspect, below - {last_name(callee), "__init__", "__new__", "__call__"}) >= _MOST


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
    around = header.startswith(("try:", "except"))
    is_quick = last_name(site.callee) in QUICK_CALLS or (site.callee is None and header.startswith("except"))
    if not line.startswith(("try:", "except")) and not (around and is_quick):
        return None
    repeated, _ = observation.sites.repetition(suspect.view) or (False, False)
    return "tried" if repeated and _spent_itself(suspect) >= _MOST else None


_MOST = 0.6
"""Of the culprit's time, what one `+` must have had: a short text in a loop of other work costs little."""
_TEXT = r"(?<![\w.]){name} *(?::[^=]+)?= *[rbfRBF]{{0,2}}[\"']"


def _spent_itself(suspect: Suspect) -> float:
    """The share of the culprit's time without a frame below it."""
    return sum(weight for _, below, weight in suspect.hits if not below) / max(1, suspect.weight_ns)


_RETURNS = 2
"""How often a call must have been seen to come back before it is one of many."""


def _yields(suspect: Suspect, sites: CallSites) -> bool:
    """Whether the culprit is an asynchronous generator, in a loop that does not await."""
    return bool(suspect.view.frame.code_flags & _ASYNC_GENERATOR) and _is_repeated(
        sites.loop_around(suspect.view)
    )


def _returns(case: StallCase, suspect: Suspect) -> int:
    """How often samples prove that a call, which a loop of the culprit repeats, came back: between two
    samples in the call the culprit was elsewhere, or had yielded, or the function that it called was before
    where it had been, at a place that no loop of that function repeats."""
    sites = case.observation.sites
    repeated, _ = sites.repetition(suspect.view) or (False, False)
    if not repeated:
        return 0
    returns, last = 0, None
    for seen in case.observation.seen:
        index = seen.stack.path.places.get(suspect.view.function)
        if index is None:
            if seen.stack and last is not None and suspect.view.frame.code_flags & _ASYNC_GENERATOR:
                returns, last = returns + 1, None
            continue
        own, callee = seen.stack.at(index), seen.stack.at(index - 1) if index else None
        if last is not None and last[1] is not None:
            is_out = callee is None and own is not suspect.view
            returns += is_out or (callee is not None and own is last[0] and _is_anew(sites, last[1], callee))
        elif last is not None:
            returns += last[0] is suspect.view and own is not suspect.view
        last = own, callee
    return returns


def _is_anew(sites: CallSites, before: PlacedFrame, now: PlacedFrame) -> bool:
    """Whether a called function was called again between two samples in it."""
    if before.function is not now.function:
        return False
    there = (before.frame.line, before.frame.column), (now.frame.line, now.frame.column)
    return 0 not in there[0] + there[1] and there[1] < there[0] and sites.repetition(now) == (False, False)


def is_growing_text(suspect: Suspect, sites: CallSites) -> bool:
    """Whether the culprit was mostly at `name += ...` or `name = name + ...` in a loop, where the source says
    that it is about text: by an operand, or by what the name was given first."""
    view = suspect.view
    there = sum(weight for at, below, weight in suspect.hits if at == view and not below)
    repeated, _ = sites.repetition(view) or (False, False)
    if not repeated or there < _MOST * suspect.weight_ns:
        return False
    site = sites.of(view)
    parts = _parts(site.text or "", site.source or "")
    if not parts:
        return False
    name = ast.unparse(parts[0])
    lines = sites.lines_of(view.function.file) if "." in name else sites.lines_before(view)
    begun = re.compile(_TEXT.format(name=re.escape(name)))
    return any(map(_is_text, parts)) or any(map(begun.search, lines))


def _parts(text: str, line: str) -> list[ast.expr]:
    """The text that grows, and what is added to it; nothing where no text grows."""
    try:
        found = statement(text)
    except (SyntaxError, ValueError, IndexError):
        return []
    match found:
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            return [target, value]
        case ast.Expr(ast.BinOp(op=ast.Add()) as operation):
            added: list[ast.expr] = []
            left: ast.expr = operation
            while isinstance(left, ast.BinOp):
                added.append(left.right)
                left = left.left
            return [left, *added] if line.startswith(f"{ast.unparse(left)} = ") else []
    return []


def _is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.JoinedStr) or (
        isinstance(part, ast.Constant) and isinstance(part.value, str | bytes)
    )


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """A `with` block of the lock."""

    header: str
    """`with self._lock`."""
    function: str
    at: str
    """File and line of the call inside it."""
    slow: str
    """That call, as written."""


def find_block(observation: Observation, waiting: tuple[WeighedSample, ...]) -> HeldBlock | None:
    """The program's own block whose holder kept most samples waiting by one call in it; None where that is
    not known for certain."""
    names = _names(_lock_text(observation, waiting[0])) if waiting else set()
    held: dict[HeldBlock | None, int] = {}
    for view, weight_ns in _taken_at(observation, waiting).items():
        block = None if view is None else _block(observation, view, names)
        held[block] = held.get(block, 0) + weight_ns
    best = max(held, key=lambda block: held[block], default=None)
    return best if best is not None and held[best] >= STEADY_SHARE * sum(held.values()) else None


def _taken_at(observation: Observation, waiting: tuple[WeighedSample, ...]) -> dict[PlacedFrame | None, int]:
    """The frames that took the lock, and how long they held it; None: not known."""
    held: dict[PlacedFrame | None, int] = {}
    for seen in waiting:
        stack, lock = seen.sample.holder_stack, seen.sample.lock
        outer = NO_STACK
        if stack is not None and not stack.truncated and lock is not None and lock.taken_at is not None:
            outer = observation.place_outer(stack, lock.taken_at)
        view = outer.at(0) if outer else None
        held[view] = held.get(view, 0) + max(1, seen.weight_ns)
    return held


def _block(observation: Observation, view: PlacedFrame, names: set[str]) -> HeldBlock | None:
    site = observation.sites.of(view)
    if view.owner is not Owner.OWN or site.text is None or site.callee is None:
        return None
    blocks = [text[:end] for _, text in observation.sites.blocks(view) if (end := header_end(text))]
    around = [header for header in blocks if header.startswith("with ")]
    of_lock = [header for header in around if names & _names(header)]
    header = of_lock[0] if of_lock else around[0] if len(around) == 1 else None
    if header is None:
        return None
    return HeldBlock(header, view.function.name, short_place(view.shown.file, view.shown.line), site.text)


def _lock_text(observation: Observation, seen: WeighedSample) -> str:
    """The lock where the thread waits: `self._lock` of `self._lock.acquire()`, or of a `with`."""
    site = observation.site(seen)
    return (site.text or "") if site.callee is None else site.callee.rpartition(".")[0]


def _names(text: str) -> set[str]:
    """`with self._lock, other as o` -> `_lock`, `other`."""
    items = text.removeprefix("with ").split(",")
    return {last_name(item.partition(" as ")[0].strip()) for item in items} - {""}


_OF_FUNCTION = 0x1
"""CO_OPTIMIZED: set for every function, so that 0 means not known, or a module."""
_ASYNC_GENERATOR = 0x200
_AWAITS = 0x80 | _ASYNC_GENERATOR
"""And CO_COROUTINE."""
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
        # Code that was made while the program ran may have no own code around it.
        called_back = next((view for view in reversed(between) if view.owner is Owner.OWN), culprit)
        if not called_back.frame.code_flags & _OF_FUNCTION:
            return None  # a cell of a notebook, which may await
        name = called_back.function.name
        return Plain(function=name, may_await=not name.startswith(("<", "__")))
    return Plain(
        function=function,
        may_await=_may_await(function, callers[:index], sites.of(callers[0]).text or ""),
        has_callers=bool(index),
        coroutine=coroutine.function.name,
        at=short_place(coroutine.shown.file, coroutine.shown.line),
        is_repeated=_is_repeated(sites.loop_around(coroutine)),
        handed=None if _needs_loop(sites, between) else _handed(sites.of(coroutine).text),
    )


_OF_LOOP = re.compile(
    r"\b(?:create_task|ensure_future|get_running_loop|get_event_loop|call_soon|call_later|call_at|start_soon"
    r"|run_in_executor|add_reader|add_writer)\("
)
"""Calls that only the loop's own thread may make."""


def _needs_loop(sites: CallSites, views: list[PlacedFrame]) -> bool:
    """Whether one of these functions, as it is written, belongs on the loop's thread."""
    return any(_OF_LOOP.search(line) for view in views for line in sites.function_lines(view))


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
