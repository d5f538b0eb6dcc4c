"""cpu: Python code was computing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import PlacedFrame
from loopcanary.diagnosis.samples.marks import call_sentence, last_name, released_gil
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, GilState
from loopcanary.words.sentences import Sentence, say


def find_compute(observation: Observation) -> Finding | None:
    """By samples on a CPU. Without the kernel's view, by a stack that differs from its neighbours: a sleeping
    thread's stack does not change."""
    running = observation.select(lambda seen: seen.on_cpu is True)
    moving = _moving(observation.select(lambda seen: seen.on_cpu is None and bool(seen.stack)))
    explained = (*running, *moving)
    if not explained or observation.is_glimpse(explained):
        return None
    return Finding(
        cause=Cause.CPU,
        share=observation.share(explained),
        confidence=(0.85 * len(running) + 0.5 * len(moving)) / len(explained),
        evidence=tuple(_sentences(observation, running, moving)),
        explained=explained,
    )


def _moving(samples: tuple[WeighedSample, ...]) -> tuple[WeighedSample, ...]:
    moved: list[WeighedSample] = []
    for index, seen in enumerate(samples):
        neighbours = samples[max(0, index - 1) : index] + samples[index + 1 : index + 2]
        if any(neighbour.stack is not seen.stack for neighbour in neighbours):
            moved.append(seen)
    return tuple(moved)


def _sentences(
    observation: Observation, running: tuple[WeighedSample, ...], moving: tuple[WeighedSample, ...]
) -> Iterator[Sentence]:
    if running:
        read = [seen.view.stack for seen in running if seen.stack]
        unread = len(running) - len(read)
        waited = 10 * (observation.ledger.run_queue_ns or 0) >= observation.duration_ns
        found = "ready" if waited else "on-cpu"
        yield say(found, some=observation.of_all(running), places=len(set(read)))
        if unread:
            yield say("unread", some=say("stacks", count=unread, whole=len(running)))
    if moving:
        yield say("moving", some=observation.of_all(moving))
    on_cpu_ns = observation.ledger.on_cpu_ns
    if on_cpu_ns is not None and running:
        yield say("ran", ran=on_cpu_ns, whole=observation.duration_ns)


STEADY_RUN = 5
"""Samples in a row at one position that speak for a C call. A Python loop alternates between a few
instructions: of two, five in a row hold a fifth of the samples by chance, of three a twentieth."""
_OPERATION_RUN = 3
"""So many even where fewer samples were taken: an operation is less of a hint than a call."""
_OPERATION = re.compile(r"[-+*/%@|&^<>\[]| in |^(?:del|import|from|raise|assert) ")
QUICK_CALLS = frozenset(
    {
        *("abs", "bool", "callable", "chr", "divmod", "float", "getattr", "hasattr", "hash", "hex", "id"),
        *("int", "isinstance", "issubclass", "iter", "len", "next", "oct", "ord", "round", "setattr", "type"),
        *("range", "enumerate", "zip", "reversed", "map", "filter", "islice", "count", "cycle", "chain"),
        *("append", "appendleft", "add", "discard", "pop", "popleft", "get", "setdefault", "is_set", "put"),
        *("items", "keys", "values", "startswith", "endswith", "isdigit", "isalpha", "upper", "lower"),
        *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"),
        *("thread_time", "thread_time_ns", "process_time_ns", "random", "randint", "randrange", "choice"),
        *("sqrt", "sin", "cos", "tan", "exp", "log", "log2", "floor", "ceil", "hypot", "fabs", "fmod", "gcd"),
        *("locked", "empty", "full", "qsize", "done", "cancelled", "poll", "get_ident", "getpid", "release"),
    }
)
"""Calls that are over at once: a loop of Python that makes many of them computes in Python."""


def find_native(observation: Observation) -> Finding | None:
    """By samples on a CPU whose stack does not move, where one instruction can last that long: a call, or an
    operation that no loop of the function repeats. Without the GIL, only C code can run."""
    on_cpu = observation.select(lambda seen: seen.on_cpu is True)
    running = tuple(filter(_is_whole, on_cpu))
    needed = min(STEADY_RUN, len(on_cpu))
    runs = _runs(on_cpu)
    returned = {stack for stack, count in Counter(run[0].stack for run in runs).items() if count > 1}
    explained = tuple(
        seen
        for run in runs
        if len(run) >= needed and _is_native(observation, run, running, returned=run[0].stack in returned)
        for seen in run
    )
    if not explained or observation.is_glimpse(on_cpu):
        return None
    bare, ended = _is_bare(explained), _has_ended(observation)
    return Finding(
        cause=Cause.NATIVE_CPU,
        share=observation.share(explained),
        confidence=_confidence(observation, explained),
        evidence=(
            say("steady", some=observation.of_all(explained)),
            *((say("freed" if ended else "bare"),) if bare else call_sentence(observation, explained)),
            _gil_sentence(explained),
        ),
        explained=explained,
        title="freeing" if bare and ended else None,
    )


def _is_bare(explained: tuple[WeighedSample, ...]) -> bool:
    """Whether the loop was in them with no frame of the work that it had called."""
    bare = [seen for seen in explained if not seen.work]
    return 2 * len(bare) > len(explained)


def _has_ended(observation: Observation) -> bool:
    """Whether work without a frame is over: a task's has one as long as it runs."""
    names = observation.evidence.names
    return names is not None and names.task is not None


def _is_whole(seen: WeighedSample) -> bool:
    """Whether the stack has its innermost frame: what could not be read there was Python's, and moving."""
    stack = seen.sample.stack
    return bool(seen.stack) and stack is not None and not stack.inner_cut


def _runs(samples: tuple[WeighedSample, ...]) -> list[list[WeighedSample]]:
    """Neighbouring samples with the very same stack, with none between them that could not be read."""
    runs: list[list[WeighedSample]] = [[]]
    for seen in samples:
        if runs[-1] and runs[-1][-1].stack is not seen.stack:
            runs.append([])
        if _is_whole(seen):
            runs[-1].append(seen)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _python_calls(running: tuple[WeighedSample, ...], view: PlacedFrame) -> set[str]:
    """Names of the Python functions that were seen right below a frame at this position."""
    stacks = {id(seen.stack): seen.stack.frames for seen in running}
    return {
        placed[index - 1].shown.function
        for placed in stacks.values()
        if view in placed and (index := placed.index(view)) > 0
    }


def _is_native(
    observation: Observation, run: list[WeighedSample], running: tuple[WeighedSample, ...], *, returned: bool
) -> bool:
    """`returned`: the thread left the position and came back to it, so that some loop repeats the call."""
    first, alone = run[0], len(run) == 1
    view, site = first.stack.at(0), observation.site(first)
    name = last_name(site.callee)
    reached = _python_calls(running, view)
    if name in reached if name else reached:
        return False  # a Python function, seen just before or after it ran: the call's, or an operator's
    if 2 * sum(seen.sample.calls_python for seen in run) > len(run):
        return False  # such functions were never given out, but seen to come and go
    if 2 * sum(released_gil(seen) for seen in run) > len(run) and not alone:
        return True
    if site.text is None:
        return not alone and view.owner is not Owner.SYNTHETIC  # a loop's jump back looks like a call there
    repeated, in_head = observation.sites.repetition(view) or (True, False)
    if site.callee is not None:
        return not (repeated or returned or alone or in_head) or name not in QUICK_CALLS
    return len(run) >= _OPERATION_RUN and not repeated and _OPERATION.search(site.text) is not None


def _confidence(observation: Observation, explained: tuple[WeighedSample, ...]) -> float:
    longest = max(len(run) for run in _runs(explained))
    if longest < STEADY_RUN:
        return 0.35 + 0.12 * longest
    blind = [seen for seen in explained if not released_gil(seen)]
    return 0.6 if blind and all(observation.site(seen).text is None for seen in blind) else 0.92


def _gil_sentence(explained: tuple[WeighedSample, ...]) -> Sentence:
    known = [seen for seen in explained if seen.sample.gil is not GilState.UNKNOWN]
    if not known:
        return say("gil-unread")
    held = sum(seen.sample.gil is GilState.SELF for seen in known)
    if held == 0:
        return say("gil-released")
    return say("gil-kept", held=held, known=len(known))
