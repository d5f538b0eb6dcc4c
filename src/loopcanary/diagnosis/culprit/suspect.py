"""The frame that the user can change: where in the program's own code the time went; and the parts of a mixed
stall, each with its share, cause and culprit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter, is_not, itemgetter, le

from loopcanary.diagnosis.causes.verdict import Verdict
from loopcanary.diagnosis.code.call_sites import CallSites, callee_of
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import Function, Path, Placed, PlacedFrame, PlacedStack, Role
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample, weigh_stacks
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Blocker, Cause, Culprit, Portion

Weighed = tuple[PlacedStack, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspect:
    """The culprit's function with the samples that speak for it."""

    view: PlacedFrame
    """The heaviest frame on the heaviest line."""
    below: Placed
    """The frames under it in the heaviest sample there, innermost first."""
    weight_ns: int
    """The weight of all samples with the function on the stack."""
    hits: tuple[tuple[PlacedFrame, Placed, int], ...]
    """The function's frames with the frames under them, each pair once, and the weight of the stacks."""
    in_app: bool


_FUNCTION_TIERS = {Owner.OWN: 0, Owner.OTHER: 1, Owner.INSTALLED: 2}


def _tier(function: Function) -> int | None:
    """How near a function is to the user's hand: own code first; None for what only carries others."""
    if function.owner is not Owner.OWN and function.plumbing:
        return None
    return _FUNCTION_TIERS.get(function.owner, 3)


def find_suspect(samples: Iterable[Weighed]) -> Suspect | None:
    """The innermost function of the program's own code that held at least half of the time of the
    samples with own code in them; where none did (a turn of many short callbacks), the heaviest.

    Without any own frame: likewise of the packages out of concern; else the innermost of installed
    packages, of all. None where there are only frames that carry others.
    """
    stacks: dict[PlacedStack, int] = {}
    paths: dict[Path, int] = {}
    for stack, weight in samples:
        stacks[stack] = stacks.get(stack, 0) + weight
        paths[stack.path] = paths.get(stack.path, 0) + weight
    made = _made_while_running(paths)
    if made is not None:
        return _gather(stacks, {path: [made] for path in paths if made in path.places}, made, in_app=True)
    tiers = {function: _tier(function) for function in set().union(*[path.places for path in paths])}
    if _is_of_what_called_it(paths):
        tiers = {function: None if tier == 0 else tier for function, tier in tiers.items()}
    tier = min((tier for tier in tiers.values() if tier is not None), default=None)
    if tier is None:
        return None
    # Of each function only the innermost frame counts: recursion is one function.
    counted = {
        path: functions
        for path in paths
        if (functions := [function for function in path.places if tiers[function] == tier])
    }
    chosen = _choose(paths, counted, innermost_only=tier > 1)
    return _gather(stacks, counted, chosen, in_app=tier == 0)


_LITTLE, _MOST = 0.25, 0.6


def _is_of_what_called_it(paths: dict[Path, int]) -> bool:
    """Whether own code had little of the time, and a package that called it had most, without own code: it
    encodes what an endpoint returned. The greenlet in which a package does what own code awaits has none of
    the callers on its stack."""
    own, callers = 0, set[Function]()
    for path, weight in paths.items():
        outermost = max((place for one, place in path.places.items() if one.owner is Owner.OWN), default=None)
        if outermost is not None:
            own += weight
            callers |= {
                one for one, at in path.places.items() if at > outermost and one.owner is Owner.INSTALLED
            }
    apart = [
        weight
        for path, weight in paths.items()
        if not callers.isdisjoint(path.places) and all(one.owner is not Owner.OWN for one in path.places)
    ]
    total = sum(paths.values())
    return own <= _LITTLE * total and 0 < _MOST * total <= sum(apart)


_CARRIERS = ("<__array_function__", "<decorator-gen", "<attrs generated", "<template>", "<frozen ")
"""Files of code that packages make to carry their own."""


def _made_while_running(paths: dict[Path, int]) -> Function | None:
    """A function of code without a file (a cell, `exec`, what cloudpickle brings) that spent most of the time
    itself: the line that called it has done nothing. Special methods are a dataclass's or the like."""
    held: dict[Function, int] = {}
    for path, weight in paths.items():
        inner = next(iter(path.places), None)
        if inner is not None and inner.owner is Owner.SYNTHETIC and _is_made(inner):
            held[inner] = held.get(inner, 0) + weight
    best = max(held, key=lambda function: held[function], default=None)
    return best if best is not None and 2 * held[best] > sum(paths.values()) else None


def _is_made(function: Function) -> bool:
    is_special = function.name.startswith("__") and function.name.endswith("__")
    return function.file.startswith("<") and not function.file.startswith(_CARRIERS) and not is_special


def _choose(paths: dict[Path, int], counted: dict[Path, list[Function]], *, innermost_only: bool) -> Function:
    """`innermost_only`: of foreign code only the innermost frame counts; which of its callers is to
    blame is nothing the user can change."""
    held: dict[Function, int] = {}
    depth: dict[Function, int] = {}
    for path, functions in counted.items():
        weight = paths[path]
        for function in functions[:1] if innermost_only else functions:
            held[function] = held.get(function, 0) + weight
            above = path.length - path.places[function]
            depth[function] = depth.get(function, 0) + weight * above
    total = sum([paths[path] for path in counted])
    heavy = [function for function in held if 2 * held[function] >= total]
    if heavy:
        # Of functions that each hold half, the inner is the one further from the loop on average.
        return max(heavy, key=lambda function: depth[function] / max(1, held[function]))
    return max(held, key=lambda function: held[function])


def _gather(
    stacks: dict[PlacedStack, int],
    counted: dict[Path, list[Function]],
    chosen: Function,
    *,
    in_app: bool,
) -> Suspect:
    places = {path: path.places[chosen] for path, found in counted.items() if chosen in found}
    held: dict[tuple[PlacedFrame, Placed], int] = {}
    for stack, weight in stacks.items():
        index = places.get(stack.path)
        if index is not None:
            hit = (stack.at(index), stack.below(index))
            held[hit] = held.get(hit, 0) + weight
    by_line: dict[int, int] = {}
    for (view, _), weight in held.items():
        line = view.shown.line
        by_line[line] = by_line.get(line, 0) + weight
    heaviest = max(by_line, key=by_line.__getitem__)
    view, below = max([hit for hit in held if hit[0].shown.line == heaviest], key=held.__getitem__)
    return Suspect(
        view=view,
        below=below,
        weight_ns=sum(held.values()),
        hits=tuple([(view, below, weight) for (view, below), weight in held.items()]),
        in_app=in_app,
    )


def to_culprit(suspect: Suspect, sites: CallSites) -> Culprit:
    shown = suspect.view.shown
    site = sites.of(suspect.view)
    return Culprit(
        function=shown.function,
        qualname=shown.qualname,
        file=shown.file,
        line=shown.line,
        source=site.source,
        in_app=suspect.in_app,
        column=site.column,
        end_column=site.end_column,
    )


def blamed_stacks(samples: Iterable[WeighedSample]) -> list[Weighed]:
    """Each distinct stack that could be read, as far as it may be blamed, with the weight of its samples."""
    return [(blamed(stack), weight) for stack, weight in weigh_stacks(samples)]


def blamed(stack: PlacedStack) -> PlacedStack:
    """The stack; of one inside an import from the frame outwards that began it."""
    if Role.IMPORT not in stack.path.roles:
        return stack
    begin = _begin(stack.work)
    frames = stack.work[begin:]
    places: dict[Function, int] = {}
    for index, view in enumerate(frames):
        places.setdefault(view.function, index)
    path = Path(length=len(frames), places=places, whole=stack.path.whole, roles=stack.path.roles)
    return replace(stack, numbers=stack.numbers[begin:], path=path)


def _begin(work: Placed) -> int:
    """Index of the frame that began the outermost import to which the program's own code led: a server that
    imports the program is not to blame for what that does. Of foreign code alone, the outermost of all."""
    begins = [
        index
        for index in range(1, len(work))
        if work[index - 1].role is Role.IMPORT and work[index].role is not Role.IMPORT
    ]
    own = [index for index, view in enumerate(work) if view.owner is Owner.OWN]
    if not own:
        return begins[-1] if begins else 0
    return max((begin for begin in begins if begin <= own[-1]), default=0)


STEADY_SHARE = 0.6
"""A call or function speaks for the culprit from this share of its time. Below, the time was spread over
many, and the heaviest would change from run to run."""


def find_blocker(suspect: Suspect, sites: CallSites, cause: Cause) -> Blocker | None:
    """The call and the innermost function; None where neither is known or none was steady.

    Where Python code computes, a call counts if Python code was mostly seen below it: the call or expression
    that a loop happens to be at is not its work.
    """
    call = _steady_call(suspect, sites)
    if cause is Cause.CPU and call is not None and (callee_of(call) is None or not _reaches_python(suspect)):
        call = None
    function = _steady_function(suspect)
    if call is None and function is None:
        return None
    return Blocker(call=call, function=function)


def _reaches_python(suspect: Suspect) -> bool:
    return 2 * sum(weight for _, below, weight in suspect.hits if below) >= suspect.weight_ns


def _steady_call(suspect: Suspect, sites: CallSites) -> str | None:
    """The text at the culprit's line, if calls of that name hold most of its time. A text that is no
    call counts where the frame did not move from it: `a @ b`, `del tree`, `import numpy`."""
    chosen = sites.of(suspect.view)
    if chosen.text is None:
        return None
    name = chosen.callee or chosen.text
    spare = suspect.weight_ns * (1.0 - STEADY_SHARE)
    for view, below, weight in sorted(suspect.hits, key=itemgetter(2), reverse=True):
        site = sites.of(view)
        if (site.callee or site.text) != name or (chosen.callee is None and below != suspect.below):
            spare -= weight
            if spare < 0:
                return None
    return chosen.text


def _steady_function(suspect: Suspect) -> str | None:
    """Qualified name of the innermost frame under the culprit, if one function held most of its time; None
    where C was called directly, nothing at all, or many functions in turn."""
    held: dict[str | None, int] = {}
    for _, below, weight in suspect.hits:
        innermost = below[0].shown.qualname if below else None
        held[innermost] = held.get(innermost, 0) + weight
    best = max(held, key=lambda name: held[name])
    return best if held[best] >= STEADY_SHARE * suspect.weight_ns else None


_LEAST = 0.1
"""A part of less is noise."""
_ALL = 0.9
"""From this share on, one part explains the stall."""
_PARTS_MAX = 6
_at_ns = attrgetter("sample.at_ns")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    cause: Cause
    samples: tuple[WeighedSample, ...]
    share: float
    blameless: bool


def find_portions(observation: Observation, verdict: Verdict, suspect: Suspect | None) -> tuple[Portion, ...]:
    """The parts, largest first; none if one culprit and cause explain the stall, or if it is a burst. A cause
    is split by function if the functions followed one another; functions that alternated are one computation.
    `suspect`: of the verdict's first finding."""
    if verdict.cause is Cause.BURST:
        return ()
    parts = [part for part in _parts(observation, verdict) if part.share >= _LEAST]
    parts.sort(key=lambda part: -part.share)
    if len(parts) < 2 or parts[0].share >= _ALL:
        return ()
    return tuple(_to_portion(observation, part, verdict, suspect) for part in parts[:_PARTS_MAX])


def _parts(observation: Observation, verdict: Verdict) -> list[_Part]:
    parts: list[_Part] = []
    for finding in verdict.findings:
        if finding.cause is Cause.UNKNOWN:
            continue
        groups = [finding.explained] if finding.blameless else _phases(finding.explained)
        for group in groups:
            whole = len(groups) == 1
            share = finding.share if whole else observation.share(group)
            parts.append(_Part(cause=finding.cause, samples=group, share=share, blameless=finding.blameless))
    return parts


def _phases(samples: tuple[WeighedSample, ...]) -> list[tuple[WeighedSample, ...]]:
    """The samples by the innermost own function, if each of these had mostly one stretch of time."""
    if not samples:
        return []
    times = [seen.sample.at_ns for seen in samples]
    in_order = all(map(le, times, times[1:]))
    ordered = samples if in_order else tuple(sorted(samples, key=_at_ns))
    stacks = {seen.view.stack.path: seen.view.stack for seen in ordered}
    own = {path: _own_function(blamed(stack).path) for path, stack in stacks.items()}
    functions = [own[seen.view.stack.path] for seen in ordered]
    runs = 1 + sum(map(is_not, functions, functions[1:]))
    if runs > 2 * len(set(functions)):
        return [samples]
    groups: dict[Function | None, list[WeighedSample]] = {}
    for function, seen in zip(functions, ordered, strict=True):
        groups.setdefault(function, []).append(seen)
    return [tuple(group) for group in groups.values()] if len(groups) > 1 else [ordered]


def _own_function(path: Path) -> Function | None:
    return next((function for function in path.places if function.owner is Owner.OWN), None)


def _to_portion(observation: Observation, part: _Part, verdict: Verdict, suspect: Suspect | None) -> Portion:
    if part.blameless:
        suspect = None
    elif verdict.first is None or part.samples is not verdict.first.explained:
        suspect = find_suspect(blamed_stacks(part.samples))
    return Portion(
        share=round(min(1.0, part.share), 4),
        cause=part.cause,
        culprit=None if suspect is None else to_culprit(suspect, observation.sites),
        blocker=None if suspect is None else find_blocker(suspect, observation.sites, part.cause),
    )
