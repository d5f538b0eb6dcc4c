"""The Trace Event Format of Chrome, as JSON.

Fields as in "Trace Event Format" (Google, 2016): complete events (`X`) with `ts` and `dur` in microseconds,
instant events (`i`), metadata (`M`). Events stand alone: one that is lost leaves no other without its end.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        for one in slices:
            self._put(
                {
                    "ph": "X",
                    "name": one.name,
                    "cat": one.category,
                    "ts": one.begin_ns / 1_000,
                    "dur": one.length_ns / 1_000,
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


FORMAT = Format(name="chrome", write=write, opened_by="ui.perfetto.dev, chrome://tracing, Speedscope")
