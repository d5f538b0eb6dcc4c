"""The Trace Event Format of Chrome, as JSON.

Fields as in "Trace Event Format" (Google, 2016): complete events (`X`) with `ts` and `dur` in microseconds,
instant events (`i`), metadata (`M`). Events stand alone: one that is lost leaves no other without its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, ulp
from typing import IO, Any

from loopcanary.exporters.formats import Format
from loopcanary.exporters.source import Exported
from loopcanary.exporters.texts import encoded
from loopcanary.exporters.trace import Slice, Track, draw
from loopcanary.wire import time_to_text


def write(exported: Exported, out: IO[bytes]) -> None:
    """The object form, whose `traceEvents` are in order of tracks, not of time, as the format allows."""
    head = {
        "displayTimeUnit": "ms",
        "otherData": {"exporter": "loopcanary", "origin": time_to_text(exported.origin_wall_ns)},
    }
    out.write(f'{encoded(head)[:-1]},"traceEvents":[\n'.encode("ascii"))
    writer = _EventWriter(out)
    draw(exported, writer)
    out.write(b"\n]}\n")


class _EventWriter:
    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._is_first = True

    def process(self, pid: int, name: str) -> None:
        self._metadata(pid, 0, "process_name", {"name": name})

    def track(self, track: Track) -> None:
        self._metadata(track.pid, track.number, "thread_name", {"name": track.name})
        # As the tracks were made: those of a thread below it.
        self._metadata(track.pid, track.number, "thread_sort_index", {"sort_index": track.number})

    def slices(self, track: Track, slices: Iterable[Slice]) -> None:
        open_until: list[tuple[int, float]] = []
        for one in slices:
            while open_until and open_until[-1][0] <= one.begin_ns:
                open_until.pop()
            ts, dur = _microseconds(one, open_until[-1][1] if open_until else inf)
            open_until.append((one.begin_ns + one.length_ns, ts + dur))
            self._put(
                {
                    "ph": "X",
                    "name": one.name,
                    "cat": one.category,
                    "ts": ts,
                    "dur": dur,
                    "pid": track.pid,
                    "tid": track.number,
                    "args": one.facts,
                }
            )

    def instant(self, track: Track, at_ns: int, name: str, facts: dict[str, Any]) -> None:
        self._put(
            {
                "ph": "i",
                "s": "t",
                "name": name,
                "cat": "hang",
                "ts": at_ns / 1_000,
                "pid": track.pid,
                "tid": track.number,
                "args": facts,
            }
        )

    def _metadata(self, pid: int, tid: int, name: str, facts: dict[str, Any]) -> None:
        self._put({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": facts})

    def _put(self, event: dict[str, Any]) -> None:
        self._out.write((("" if self._is_first else ",\n") + encoded(event)).encode("ascii"))
        self._is_first = False


def _microseconds(one: Slice, until: float) -> tuple[float, float]:
    """Begin and length. Their sum is later neither than `until`, the sum of the slice around it, nor than the
    next slice: Speedscope adds them up and nests by the result, in which a last bit counts."""
    ts, dur = one.begin_ns / 1_000, one.length_ns / 1_000
    until = min(until, (one.begin_ns + one.length_ns) / 1_000)
    if ts + dur > until:
        dur = max(until - ts, 0.0)
    while dur > 0 and ts + dur > until:
        dur = max(dur - ulp(max(abs(ts), abs(until), dur)), 0.0)
    return ts, dur


FORMAT = Format(name="chrome", write=write)
