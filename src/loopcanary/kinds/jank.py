"""Frames that were drawn late."""

from __future__ import annotations

from collections.abc import Iterator

from loopcanary.document.makers import dim, facts, name, number, part, said
from loopcanary.document.parts import Block, Facts, Head, Pieces, Table, TableRow
from loopcanary.document.times import exactly
from loopcanary.kinds.lags import NO_STALL, LagKind, place_words
from loopcanary.model.figures import FROZEN_NS, HITCH_RATIO_MAX
from loopcanary.model.issues.lags import Jank, LateFrame
from loopcanary.model.units import format_duration, format_number
from loopcanary.protocols.kinds import meanwhile_words
from loopcanary.words.frames import fps_words, frozen_words, level_words
from loopcanary.words.text import count_of

_S_NS = 1_000_000_000
_MS_NS = 1_000_000
_MANY_SMALL = (
    "no callback was long enough to be sampled: "
    "set a lower threshold (such as 40ms) to see the stacks of such frames"
)
_HEADS = (Head("frame", is_number=True), Head("dropped", is_number=True), Head("began"), Head("stall in it"))


class JankKind(LagKind[Jank]):
    """A stretch of frames that people see stutter."""

    issue_class = Jank
    words = "jank"
    place = "scene"

    def title(self, jank: Jank) -> str:
        """`31 of 60 fps in menu, worst frame 210 ms: load (app.py:12)`."""
        figures, where = jank.figures, f" in {jank.scene}" if jank.scene else ""
        worst = f"worst frame {format_duration(figures.worst_ns)}"
        return f"{figures.fps:.0f} of {figures.refresh_hz:.0f} fps{where}, {worst}{place_words(jank)}"

    def advice(self, jank: Jank) -> str | None:
        """How to see what is too short to be sampled; None: a stall was in its worst frames."""
        return None if any(frame.stalls for frame in jank.worst) else _MANY_SMALL

    def evidence(self, jank: Jank) -> Iterator[str]:
        """Late and frozen frames against the limits."""
        figures = jank.figures
        late = sum(figures.drop_level[1:])
        if late and figures.frame_ns:
            per_second = _S_NS * figures.janky_ns / figures.frame_ns / _MS_NS
            limit = format_number(HITCH_RATIO_MAX)
            yield (
                f"{late:,} of {count_of(figures.frames, 'frame')} dropped three or more: "
                f"{format_number(per_second)} ms late in each second; the limit is {limit} ms"
            )
        if figures.frozen:
            yield f"{count_of(figures.frozen, 'frame')} took more than {format_duration(FROZEN_NS)}"
        if jank.stalls:
            guilty = sum(1 for frame in jank.worst if frame.stalls)
            yield f"{meanwhile_words(jank)}, in {guilty} of its {count_of(len(jank.worst), 'worst frame')}"
        else:
            yield NO_STALL

    def figures(self, jank: Jank) -> Facts:
        found = jank.figures
        frames = f"{fps_words(found)}, {count_of(found.frames, 'frame')}"
        return facts(
            ("frames", f"{frames} in {format_duration(found.frame_ns)}, {found.dropped:,} dropped"),
            ("levels", level_words(found)),
            ("late", f"{format_number(found.hitch_ms_per_s)} ms in each second"),
            ("frozen", frozen_words(found)),
        )

    def parts(self, jank: Jank) -> tuple[Block, ...]:
        """The worst frames, with the stalls in them."""
        rows = tuple(map(_row, jank.worst))
        return part("worst frames", [Table(_HEADS, rows)] if rows else [])


def _row(frame: LateFrame) -> TableRow:
    return TableRow(
        (
            said(number(format_duration(frame.duration_ns))),
            said(f"{frame.dropped:,}"),
            said(exactly(frame.began_wall_ns)),
            _stalls(frame.stalls),
        )
    )


def _stalls(stalls: tuple[str, ...]) -> Pieces:
    if not stalls:
        return said(dim("no piece of work was as long as the threshold"))
    return said(*(part for stall in stalls for part in (name(stall), " ")))[:-1]
