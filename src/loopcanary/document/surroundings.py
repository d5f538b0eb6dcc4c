"""Where a stall's wall time went, and what machine, container and process did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from loopcanary.document.makers import NAME_MAX, said
from loopcanary.document.parts import Share, Shares, Tone
from loopcanary.model import Issue, Ledger, Session, Surroundings
from loopcanary.model.units import format_duration, format_size
from loopcanary.words.text import count_of, printable
from loopcanary.words.waiting import share_words

LEDGER_LEAST = 0.005
"""A smaller share of a stall is not worth a word."""


def ledger(ledger: Ledger, duration_ns: int) -> Iterator[Shares]:
    """A bar with its words; nothing if nothing was measured."""
    entries = [
        ("CPU", ledger.on_cpu_ns, Tone.GOOD, "█#"),
        ("GIL", ledger.gil_wait_ns, Tone.WARN, "▓="),
        ("run queue", ledger.run_queue_ns, Tone.DIM, "▒-"),
        ("blocked", ledger.blocked_ns, Tone.NUMBER, "░."),
    ]
    known = [
        Share(label, ns / duration_ns, tone, marks)
        for label, ns, tone, marks in entries
        if ns is not None and duration_ns > 0
    ]
    if known:
        words = [_words(share, ledger, duration_ns) for share in known if share.share >= LEDGER_LEAST]
        error = f" ± {format_duration(ledger.error_ns)}" if ledger.error_ns else ""
        yield Shares("time", tuple(known), said(", ".join(words) + error))


def _words(share: Share, ledger: Ledger, duration_ns: int) -> str:
    gc = (ledger.gc_ns or 0) / duration_ns if share.name == "CPU" else 0.0
    collected = f" (gc {_rounded(gc)})" if gc >= LEDGER_LEAST else ""
    return f"{share.name} {_rounded(min(share.share, 1.0))}{collected}"


def _rounded(share: float) -> str:
    return f"{share * 100:.0f} %"


def surroundings_words(around: Surroundings) -> str:
    switches = (around.voluntary_switches or 0, around.involuntary_switches or 0)
    facts: list[tuple[Any, Callable[[Any], str]]] = [
        (around.system_cpu, lambda v: f"machine {share_words(v)} busy"),
        (_notable(around.stolen_cpu), lambda v: f"{share_words(v)} of that stolen by the hypervisor"),
        (around.process_cpu, lambda v: f"this process used {v:.2f} cores"),
        (around.throttled_ns or None, lambda v: f"container throttled {format_duration(v)}"),
        (_notable(around.pressure_cpu), lambda v: f"pressure on CPU {share_words(v)}"),
        (_notable(around.pressure_memory), lambda v: f"pressure on memory {share_words(v)}"),
        (_notable(around.pressure_io), lambda v: f"pressure on disks {share_words(v)}"),
        (around.major_faults or None, lambda v: count_of(v, "major fault")),
        (
            switches if any(switches) else None,
            lambda v: "{:,} voluntary and {:,} forced context switches".format(*v),
        ),
        (around.nice or None, lambda v: f"nice {v}"),
        (None if around.policy == "other" else around.policy, lambda v: f"scheduled as SCHED_{v.upper()}"),
        (around.memory_available_bytes, lambda v: f"{format_size(v)} of memory free"),
        (around.memory_used_bytes, lambda v: f"{format_size(v)} used by the container"),
    ]
    return ", ".join(word(value) for value, word in facts if value is not None)


def _notable(share: float | None) -> float | None:
    return share if share is not None and share >= LEDGER_LEAST else None


def process_words(issue: Issue, session: Session | None) -> str:
    if session is None:
        return f"pid {issue.pid}"
    who = " ".join(filter(None, (session.name, session.version)))
    host, python = printable(session.host, NAME_MAX), printable(session.python, NAME_MAX)
    pid = f"pid {issue.pid} " if issue.pid else ""  # other monitors say none
    return f"{printable(who, 2 * NAME_MAX)}, {pid}on {host}, {python}"
