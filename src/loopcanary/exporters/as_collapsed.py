"""Collapsed ("folded") stacks: `program;thread;outer;inner 412345678`, the weight in nanoseconds of stall.

The input of Brendan Gregg's flamegraph.pl (github.com/brendangregg/FlameGraph): frames divided by `;`, the
weight after the last space. Readers add up lines of equal stacks. Traced calls begin with
`program, exact calls`, and are a tower of their own beside that of the samples.
"""

from __future__ import annotations

from typing import IO

from loopcanary.exporters import Exported, Format
from loopcanary.exporters.exact_calls import NAME, exact_calls
from loopcanary.exporters.spans import weights
from loopcanary.exporters.texts import frame_name, name_of, short_place, whole
from loopcanary.model import StackFrame


def write(exported: Exported, out: IO[bytes]) -> None:
    for stall in exported.stalls:
        program, thread = _part(name_of(exported.program(stall).name)), _part(name_of(stall.thread))
        for frames, length_ns, _ in weights(stall):
            _write(out, [program, thread], frames, length_ns)
        for call in exact_calls(stall):
            _write(out, [f"{program}, {NAME}", thread], call.path, call.own_ns)


def _write(out: IO[bytes], roots: list[str], frames: tuple[StackFrame, ...], length_ns: int) -> None:
    if length_ns > 0:
        line = ";".join([*roots, *(_part(_label(frame)) for frame in frames)])
        out.write(f"{line} {length_ns}\n".encode())


def _label(frame: StackFrame) -> str:
    place = f" ({short_place(frame)})" if frame.file else ""
    return frame_name(frame) + place


def _part(text: str) -> str:
    return whole(text).replace(";", ":") or "?"


FORMAT = Format(name="collapsed", write=write)
