"""native-cpu: one call into C was computing."""

from __future__ import annotations

import re

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.causes.marks import call_sentence
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.model import Cause, GilState

STEADY_RUN = 5
"""Samples in a row at one position that speak for a C call. A Python loop alternates between a few
instructions: of two, five in a row hold a fifth of the samples by chance, of three a twentieth."""
_OPERATION = re.compile(r"[-+*/%@|&^<>\[]| in |^(?:del|import|from|raise|assert) ")


def find_native(observation: Observation) -> Finding | None:
    """By samples on a CPU whose stack does not move, at a text that can run C code for long."""
    running = observation.select(lambda seen: seen.on_cpu is True and bool(seen.placed) and _is_whole(seen))
    needed = min(STEADY_RUN, len(running))
    explained = tuple(
        seen
        for run in _runs(running)
        if len(run) >= needed and _can_compute(observation, run[0], alone=len(run) == 1)
        for seen in run
    )
    if not explained:
        return None
    longest = max(len(run) for run in _runs(explained))
    return Finding(
        cause=Cause.NATIVE_CPU,
        share=observation.share(explained),
        confidence=0.92 if longest >= STEADY_RUN else 0.35 + 0.12 * longest,
        evidence=(
            f"{observation.of_all(explained)} were on a CPU at one and the same position.",
            *call_sentence(observation, explained),
            *_gil_sentence(explained),
        ),
        explained=explained,
    )


def _is_whole(seen: Seen) -> bool:
    """Frames that moved below the innermost one that could be read were Python's."""
    return seen.sample.stack is not None and not seen.sample.stack.inner_cut


def _runs(samples: tuple[Seen, ...]) -> list[list[Seen]]:
    """Neighbouring samples with the very same stack."""
    runs: list[list[Seen]] = []
    for seen in samples:
        if runs and runs[-1][-1].placed is seen.placed:
            runs[-1].append(seen)
        else:
            runs.append([seen])
    return runs


def _can_compute(observation: Observation, seen: Seen, *, alone: bool) -> bool:
    """A name, a constant or `pass` takes no time: standing there is chance. Without text, only a run of
    samples tells; of one sample, only a call does."""
    site = observation.site(seen)
    if site.text is None:
        return not alone
    return site.callee is not None or (not alone and _OPERATION.search(site.text) is not None)


def _gil_sentence(explained: tuple[Seen, ...]) -> tuple[str, ...]:
    known = [seen for seen in explained if seen.sample.gil is not GilState.UNKNOWN]
    if not known:
        return ("Whether it held the GIL could not be read.",)
    held = sum(seen.sample.gil is GilState.SELF for seen in known)
    if held == 0:
        return ("The call had released the GIL: other threads could run.",)
    return (f"The call held the GIL in {held} of {len(known)} of them: no other thread could run Python.",)
