"""host: the thread was stopped, or ready to run and not run. Never blamed on code."""

from __future__ import annotations

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.model import Cause
from loopcanary.model.units import format_duration

_IDLE_SHARE = 0.2
"""Runnable with less CPU time than this share of the wall time: it waited for a CPU."""
_QUEUE_SHARE = 0.5
"""From this share of the seen time in the run queue, runnable samples count as waiting for a CPU: the
kernel adds a wait to its sum only when it is over, so single samples may show nothing of it."""


def find_host(observation: Observation) -> Finding | None:
    """By the kernel's state letter, the CPU clock between samples, and the run-queue time."""
    stopped = observation.select(lambda seen: seen.state in ("T", "t"))
    queued = _queue_share(observation)
    waiting = observation.select_each(
        lambda seen: seen.state == "R" and (queued >= _QUEUE_SHARE or _is_starved(seen))
    )
    explained = (*stopped, *waiting)
    share = observation.share(explained)
    if queued >= _QUEUE_SHARE:
        share = max(share, queued)
    if not share:
        return None
    return Finding(
        cause=Cause.HOST,
        share=min(1.0, share),
        confidence=0.9 if stopped or queued >= _QUEUE_SHARE else 0.7,
        evidence=tuple(_sentences(observation, stopped, waiting)),
        explained=explained,
    )


def _is_starved(seen: Seen) -> bool:
    return seen.cpu_share is not None and seen.cpu_share < _IDLE_SHARE


def _queue_share(observation: Observation) -> float:
    ledger = observation.ledger
    if ledger.run_queue_ns is None or ledger.on_cpu_ns is None:
        return 0.0
    span = ledger.on_cpu_ns + ledger.run_queue_ns + (ledger.gil_wait_ns or 0) + (ledger.blocked_ns or 0)
    return ledger.run_queue_ns / span if span else 0.0


def _sentences(observation: Observation, stopped: tuple[Seen, ...], waiting: tuple[Seen, ...]) -> list[str]:
    sentences: list[str] = []
    if stopped:
        sentences.append(f"{observation.of_all(stopped)} found the thread stopped by a signal or a tracer.")
    if waiting:
        sentences.append(f"{observation.of_all(waiting)} found the thread ready to run but given no CPU.")
    waited_ns = observation.ledger.run_queue_ns
    if waited_ns:
        sentences.append(
            f"It waited {format_duration(waited_ns)} of {format_duration(observation.duration_ns)} for a CPU."
        )
    return sentences
