"""Slow methods: pieces of work over their limit, with the calls in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopcanary.document.makers import facts
from loopcanary.document.parts import Block, Facts, TreeRow
from loopcanary.document.trees import call_of, limit_words, times_of, tree_part, work_parts
from loopcanary.model import Session
from loopcanary.model.calls import heaviest, levels
from loopcanary.model.issues.slow_method import KEY_SHARE, ROWS_MAX, SlowMethod, key_of
from loopcanary.model.stall import culprit_at
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import Kind, function_identity, refuse_negative
from loopcanary.words.text import count_of, printable
from loopcanary.words.traced import left_out_words
from loopcanary.words.waiting import share_words

_NAME_MAX = 200


class SlowMethodKind(Kind[SlowMethod]):
    """A piece of work that took too long, as a tree of the calls in it (Matrix: evil method)."""

    issue_class = SlowMethod
    words = "slow method"
    list_words = "slow methods"

    def title(self, slow: SlowMethod) -> str:
        """`load_orders took 1.20 s (orders.py:12)`."""
        took, row = format_duration(slow.duration_ns), slow.key_row
        if row is None:
            return f"a piece of work took {took}"
        frame = row.frame
        place = f"{frame.file.rpartition('/')[2]}:{frame.line}"
        part = "" if row.total_ns == slow.duration_ns else f"{format_duration(row.total_ns)} of "
        return printable(f"{frame.qualname} took {part}{took} ({place})", _NAME_MAX)

    def evidence(self, slow: SlowMethod) -> Iterator[str]:
        """Its length against the limit, and the longest call."""
        took, limit = format_duration(slow.duration_ns), format_duration(slow.threshold_ns)
        yield f"{took}; the limit is {limit}"
        key = slow.key_row
        if key is not None and slow.duration_ns > 0:
            share = key.total_ns / slow.duration_ns
            name = printable(key.frame.qualname, 120)
            enough = "" if share >= KEY_SHARE else f"; no call took {share_words(KEY_SHARE)}"
            yield f"{name} took {share_words(share)} of the time in {count_of(key.count, 'call')}{enough}"
        if slow.left_out:
            own = format_duration(slow.left_out_ns)
            yield f"{count_of(slow.left_out, 'short row')} left out, {own} in all by themselves"

    def figures(self, slow: SlowMethod) -> Facts:
        return facts(("limit", limit_words(slow)))

    def parts(self, slow: SlowMethod) -> tuple[Block, ...]:
        shown = slow.rows[:ROWS_MAX]
        rows = tuple(
            TreeRow(
                times_of(row.total_ns, row.self_ns),
                level,
                call_of(row.frame, row.count, is_open=row.open),
                is_key=row is slow.key_row,
            )
            for row, level in zip(shown, levels([row.depth for row in shown]), strict=True)
        )
        return (
            *tree_part("calls", rows, left_out_words(slow, len(shown))),
            *work_parts(slow.work),
        )

    def identity(self, slow: SlowMethod) -> tuple[str, ...]:
        """What its fingerprint is made of: no line, no time, no process, and of the file no more than its own
        name and its folder's."""
        row = slow.key_row
        if row is None:
            return (f"thread={slow.thread}",)
        return function_identity(row.frame.qualname, row.frame.file)

    def fitted(self, slow: SlowMethod, session: Session) -> SlowMethod:  # noqa: ARG002 - as every kind's
        """With its longest rows, its key, and the key's function as its culprit. ValueError: a number is less
        than 0."""
        refuse_negative(depth=(row.depth for row in slow.rows), count=(row.count for row in slow.rows))
        refuse_negative(times=(one.times for one in slow.work))
        # Of all rows, before any is left out: the key must not depend on which are.
        key = slow.key if slow.key_row is not None else key_of(slow.rows, slow.duration_ns)
        kept = heaviest(slow.rows, ROWS_MAX, depth=lambda row: row.depth, weight=lambda row: row.total_ns)
        rows = tuple(slow.rows[index] for index in kept)
        gone = set(range(len(slow.rows))) - set(kept)
        slow = replace(
            slow,
            rows=tuple(replace(row, calls=row.calls or row.count) for row in rows),
            work=slow.work[:ROWS_MAX],
            # It may be further in than rows are kept, as of a recursive function.
            key=kept.index(key) if key in kept else key_of(rows, slow.duration_ns),
            left_out=slow.left_out + len(gone),
            left_out_ns=slow.left_out_ns + sum(slow.rows[index].self_ns for index in gone),
        )
        row = slow.key_row
        return slow if slow.culprit or row is None else replace(slow, culprit=culprit_at(row.frame))
