"""host: the thread was stopped, or ready to run and not run. Never blamed on code."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause
from loopcanary.words.sentences import Sentence, say

_IDLE_SHARE = 0.2
"""Runnable with less CPU time than this share of the wall time: it waited for a CPU."""
_WORTH_SAYING = 0.1
"""Every thread waits a little for its CPU."""

_CROWDED = 0.9
"""Share of all cores that was busy: who did not run may have had none."""

_YIELDING = ("batch", "idle")
"""Policies under which a thread runs after others (sched(7))."""

_MOST = 0.5
"""Of the stall, stolen, to explain it: whose time was stolen is known of all that ran together only."""

_THROTTLED = "throttled"
_STOLEN = "stolen"
_FROZEN = "frozen"
_TOPICS = (_THROTTLED, _STOLEN, _FROZEN)


def find_host(observation: Observation) -> Finding | None:
    """By the kernel's state letter, the CPU clock between samples, the run-queue time, and the gaps in
    which the watchdog did not run either.

    A stop is the host's, and the cause where it is the largest part. Time in the run queue, or taken by the
    hypervisor, is the price of the CPU time that code asks for: it belongs to code that would stall on an
    idle machine too (`_is_of_code`), and else decides for the host. The kernel adds a wait to its sum only
    when it is over, so the sum may show more than single samples: then as many runnable samples are explained
    as the sum stands for.
    """
    stopped = observation.select(lambda seen: seen.state in ("T", "t"))
    is_codes, frozen = _is_of_code(observation), _frozen_share(observation)
    starved = () if is_codes else tuple(filter(_is_starved, observation.select(_is_runnable)))
    queued = 0.0 if is_codes else _queue_share(observation)
    stolen = 0.0 if is_codes else _stolen_share(observation)
    waiting = _fill_up(observation, starved, max(queued, stolen))
    explained = (*stopped, *_leave_what_ran(observation, waiting, stolen))
    # What was counted as run-queue time within a gap is in both figures.
    share = min(1.0, max(observation.share(explained) + frozen, queued, stolen))
    if share < _WORTH_SAYING:
        return None
    title = _STOLEN if stolen > max(queued, frozen) else _title(observation, stopped, queued, frozen)
    return Finding(
        cause=Cause.HOST,
        share=share,
        confidence=_confidence(observation, stopped, queued, frozen),
        evidence=tuple(_sentences(observation, stopped, starved)),
        explained=explained,
        topic=title if title in _TOPICS else "lowered" if _is_lowered(observation) else None,
        title=title,
        blameless=True,
        decides=not is_codes,
    )


def _is_of_code(observation: Observation) -> bool:
    """Whether the stall would be one on an idle machine that is not stopped: its own CPU time, with its
    blocked and its GIL time, reaches the threshold."""
    return _own_ns(observation) >= observation.evidence.threshold_ns


def _confidence(
    observation: Observation, stopped: tuple[WeighedSample, ...], queued: float, frozen: float
) -> float:
    if stopped or queued >= _WORTH_SAYING:
        return 0.9
    if frozen < _WORTH_SAYING:
        return 0.7
    return 0.4 if _may_have_queued(observation) else 0.8


def _own_ns(observation: Observation) -> float:
    """What the stall would have lasted on an idle machine. Where the kernel's counters are not known, by the
    samples."""
    duration_ns, ledger = observation.duration_ns, observation.ledger
    stopped = observation.select(lambda seen: seen.state in ("T", "t"))
    stop = observation.share(stopped) + _frozen_share(observation)
    if ledger.run_queue_ns is None or ledger.blocked_ns is None:
        starved = observation.share(observation.select_each(_is_starved))
        return duration_ns * (1.0 - min(1.0, max(stop + starved, _stolen_share(observation))))
    stopped_ns = min(round(stop * duration_ns), ledger.blocked_ns)
    # Some kernels count what the hypervisor took as the thread's own CPU time, others as none.
    taken_ns = max(ledger.run_queue_ns, _stolen_share(observation) * duration_ns)
    return duration_ns - taken_ns - stopped_ns


def _is_runnable(seen: WeighedSample) -> bool:
    """Whether it could use a core. A thread that is awake only to ask for the GIL could not."""
    return seen.state == "R" and not seen.sample.waits_for_gil


def _is_starved(seen: WeighedSample) -> bool:
    return _is_runnable(seen) and seen.cpu_share is not None and seen.cpu_share < _IDLE_SHARE


def _fill_up(
    observation: Observation, starved: tuple[WeighedSample, ...], queued: float
) -> tuple[WeighedSample, ...]:
    """The starved samples, and more runnable ones, least on a CPU first, up to the share of the queue."""
    if queued < _WORTH_SAYING:
        return starved
    chosen = list(starved)
    wanted = queued * observation.total_ns - observation.frozen_ns - sum(seen.weight_ns for seen in starved)
    if wanted <= 0:
        return starved
    others = observation.select_each(lambda seen: _is_runnable(seen) and not _is_starved(seen))
    for seen in sorted(others, key=lambda entry: entry.cpu_share or 0.0):
        if wanted < seen.weight_ns / 2:
            break
        chosen.append(seen)
        wanted -= seen.weight_ns
    return tuple(chosen)


def _leave_what_ran(
    observation: Observation, waiting: tuple[WeighedSample, ...], stolen: float
) -> tuple[WeighedSample, ...]:
    """Leaves the samples with most CPU time to the code, as many as the time that the thread ran stands for.
    On a crowded machine each sample has a little CPU time; together that is the code's. Some kernels count
    the stolen time as the thread's own."""
    on_cpu_ns = observation.ledger.on_cpu_ns
    if on_cpu_ns is None or not observation.duration_ns:
        return waiting
    away = max(1.0 - on_cpu_ns / observation.duration_ns, stolen)
    room = away * observation.total_ns - observation.frozen_ns
    kept: list[WeighedSample] = []
    for seen in sorted(waiting, key=lambda entry: entry.cpu_share or 0.0):
        if room < seen.weight_ns / 2:
            break
        kept.append(seen)
        room -= seen.weight_ns
    return tuple(kept)


def _queue_share(observation: Observation) -> float:
    ledger = observation.ledger
    if ledger.run_queue_ns is None or ledger.on_cpu_ns is None:
        return 0.0
    span = ledger.on_cpu_ns + ledger.run_queue_ns + (ledger.gil_wait_ns or 0) + (ledger.blocked_ns or 0)
    return ledger.run_queue_ns / span if span else 0.0


def _stolen_share(observation: Observation) -> float:
    """Share of the stall that the hypervisor took, if that is most of it; else 0. Assumes that the thread
    lost the same part of the time in which it could use a core as all threads did."""
    around = observation.surroundings
    taken = 0.0 if around is None else around.stolen_cpu or 0.0
    share = taken * observation.share(observation.select(_is_runnable))
    return share if share > _MOST else 0.0


def _frozen_share(observation: Observation) -> float:
    return observation.frozen_ns / observation.total_ns if observation.total_ns else 0.0


def _throttled_ns(observation: Observation) -> int:
    around = observation.surroundings
    return 0 if around is None else around.throttled_ns or 0


def _title(observation: Observation, stopped: tuple[WeighedSample, ...], queued: float, frozen: float) -> str:
    if _throttled_ns(observation) >= _WORTH_SAYING * observation.duration_ns:
        return _THROTTLED
    if stopped and observation.share(stopped) >= queued:
        return _FROZEN
    is_frozen = frozen > max(queued, _WORTH_SAYING) and not _may_have_queued(observation)
    return _FROZEN if is_frozen else "host"


def _may_have_queued(observation: Observation) -> bool:
    """Whether the thread may have waited for a core all the time, for all that was seen."""
    around = observation.surroundings
    is_crowded = around is not None and (around.system_cpu or 0.0) >= _CROWDED
    return observation.ledger.run_queue_ns is None and is_crowded


def _sentences(
    observation: Observation, stopped: tuple[WeighedSample, ...], starved: tuple[WeighedSample, ...]
) -> Iterator[Sentence]:
    waited_ns, frozen_ns = observation.ledger.run_queue_ns or 0, observation.frozen_ns
    if stopped:
        yield say("stopped", some=observation.of_all(stopped))
    if frozen_ns:
        unknown = "frozen-either" if _may_have_queued(observation) else "frozen-stopped"
        yield say("frozen-starved" if waited_ns >= frozen_ns else unknown, lasted=frozen_ns)
    if starved:
        yield say("starved", some=observation.of_all(starved))
    yield from wait_sentences(observation)
    yield from _priority(observation)
    yield from _machine(observation)


def wait_sentences(observation: Observation) -> Iterator[Sentence]:
    """For how long the thread could run and did not, whatever the cause."""
    waited_ns, around = observation.ledger.run_queue_ns or 0, observation.surroundings
    if waited_ns >= _WORTH_SAYING * observation.duration_ns:
        yield say("queued", waited=waited_ns, whole=observation.duration_ns)
    taken = 0.0 if around is None else around.stolen_cpu or 0.0
    if taken >= _WORTH_SAYING and observation.select(_is_runnable):
        yield say("stolen", share=taken)


def _priority(observation: Observation) -> Iterator[Sentence]:
    """Why this thread gets a core later than others, and who made it so."""
    around = observation.surroundings
    if around is None or not _is_lowered(observation):
        return
    if (around.nice or 0) > 0:
        yield say("niced", nice=around.nice)
    if around.policy in _YIELDING:
        yield say("policy", policy=f"SCHED_{around.policy.upper()}")
    if _is_bound(observation):
        yield say("bound", cores=around.cores, before=observation.cores)
    for made in observation.priority_changes:
        yield say("made-so", call=made.call, file=made.file, line=str(made.line), function=made.function)


def _is_lowered(observation: Observation) -> bool:
    """Whether others get a core before this thread does."""
    around = observation.surroundings
    if around is None:
        return False
    return (around.nice or 0) > 0 or around.policy in _YIELDING or _is_bound(observation)


def _is_bound(observation: Observation) -> bool:
    around = observation.surroundings
    return around is not None and around.cores is not None and around.cores < observation.cores


def _machine(observation: Observation) -> Iterator[Sentence]:
    """What else was short on the machine meanwhile."""
    around = observation.surroundings
    if around is None:
        return
    if around.throttled_ns:
        yield say("throttled", throttled=around.throttled_ns)
    if around.system_cpu is not None:
        yield say("machine-busy", share=around.system_cpu)
    if around.process_cpu is not None and around.process_cpu >= 1.0:
        yield say("own-cores", cores=round(around.process_cpu, 1))
    if around.pressure_cpu:
        yield say("pressure", share=around.pressure_cpu)
