"""Matrix's stack and key: the original's rules as they are in its source, beside what the exporter makes of
the tree of the same words."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.stalls import STALL

from loopcanary.exporters import Exported
from loopcanary.exporters.as_matrix import DISPATCH, FORMAT, MatrixRow, stack_key, stack_text, trimmed
from loopcanary.flight.beside.calls import AT_NO_WORK
from loopcanary.model import StackFrame
from loopcanary.model.calls import TracedCall, TracedCalls

MS = 1_000_000
IN = 1 << 63
Word = tuple[bool, int, int]
EXAMPLE: list[Word] = [
    *((True, DISPATCH, 100), (True, 7, 100), (True, 8, 105), (False, 8, 125), (True, 8, 125)),
    *((False, 8, 150), (True, 9, 150), (False, 7, 900), (False, DISPATCH, 905)),
]
"""9 is left by an exception."""


def original(words: list[Word]) -> list[MatrixRow]:
    """TraceDataUtils.structuredDataToStack of a dispatch, then stackToTree, in its own order of steps."""
    items: list[list[int]] = []  # newest first: depth, id, count, cost
    stack: list[tuple[int, int]] = []
    depth = 0
    for is_in, number, time in words:
        if is_in:
            depth = 0 if number == DISPATCH else depth
            depth += 1
            stack.append((number, time))
            continue
        popped, begin = stack.pop()
        depth -= 1
        while popped != number and stack:
            popped, begin = stack.pop()
            depth -= 1
        if items and items[0][:2] == [depth, number] and depth != 0:
            items[0][2] += 1
            items[0][3] += items[0][3] if time - begin == 5000 else time - begin
        else:
            items.insert(0, [depth, number, 1, time - begin])
    return in_order(items)


def in_order(items: list[list[int]]) -> list[MatrixRow]:
    """From the last call back: those inside a call follow it, and siblings are turned round."""
    if not items:
        return []
    head, inside, found = items[0], items[1:], []
    starts = [at for at, one in enumerate(inside) if one[0] == head[0] + 1]
    for start, end in reversed([*zip(starts, [*starts[1:], len(inside)], strict=False)]):
        found += in_order(inside[start:end])
    return [MatrixRow(*head), *found]


def frame(number: int) -> StackFrame:
    return StackFrame(function=f"f{number}", qualname=f"f{number}", file="/srv/a.py", line=1, in_app=True)


def exported(words: list[Word]) -> tuple[list[MatrixRow], str, str]:
    """What the exporter says of them: rows with the words' own ids, key and mapping."""
    native = pytest.importorskip("loopcanary._native")
    packed = [is_in << 63 | number << 43 | time * 1000 for is_in, number, time in words[1:-1]]
    begin, end = words[0][2] * 1000, words[-1][2] * 1000

    def read(first: int, count: int) -> bytes:
        return struct.pack(f"<{count}Q", *packed[first : first + count])

    rows, *_ = native.call_tree(read, 0, len(packed), True, b"", 0, (begin, end), 1 << 16, AT_NO_WORK)
    depths: list[int] = []
    calls = []
    for parent, number, count, total, own, _ in in_depth_first_order(rows):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        calls.append(
            TracedCall(
                frame=frame(number), depth=depths[-1], calls=count, total_ns=total * 1000, self_ns=own * 1000
            )
        )
    stall = replace(STALL, duration_ns=(end - begin) * 1000, calls=TracedCalls(rows=tuple(calls)))
    out = io.BytesIO()
    FORMAT.write(Exported(stalls=iter((stall,)), origin_wall_ns=0), out)
    told = json.loads(out.getvalue())
    ids = {1048574: DISPATCH}
    for line in told["methodMapping"].splitlines()[1:]:
        number, _, method = line.split(",")
        ids[int(number)] = int(method.rpartition(" f")[2])
    found = [MatrixRow(*map(int, line.split(","))) for line in told["stack"].splitlines()]
    key = f"{ids[int(told['stackKey'].removesuffix('|'))]}|"
    return [row._replace(id=ids[row.id]) for row in found], key, told["methodMapping"]


def in_depth_first_order(rows):
    inside: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        inside.setdefault(row[0], []).append(index)
    order: list[int] = []
    waiting = [*reversed(inside.get(-1, []))]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(inside.get(order[-1], []))
    places = {index: place for place, index in enumerate(order)}
    return [(places.get(rows[index][0], -1), *rows[index][1:]) for index in order]


def test_the_original_s_worked_example():
    rows = original(EXAMPLE)
    assert stack_text(rows) == "0,1048574,1,805\n1,7,1,800\n2,8,2,45\n"
    assert stack_key(rows, 805) == "7|"


@pytest.mark.native
def test_the_worked_example_by_the_exporter():
    """It has the call that ended by an exception, too; the key is the same."""
    whole = [*EXAMPLE[:7], (False, 9, 890), *EXAMPLE[7:]]
    rows, key, mapping = exported(whole)
    assert stack_text(rows) == "0,1048574,1,805\n1,7,1,800\n2,8,2,45\n2,9,1,740\n"
    assert mapping.splitlines()[:2] == ["1048574,1,asyncio dispatch", "1,0,a f7"]
    assert key == stack_key(original(whole), 805) == "9|"


def words_of(tree, start: int) -> tuple[list[Word], int]:
    number, pause, inside = tree
    words, now = [(True, number, start)], start + pause
    for one in inside:
        more, now = words_of(one, now)
        words += more
    return [*words, (False, number, now)], now


def distinct(trees):
    """Equal siblings are merged by the original only where they are next to each other and have nothing
    inside them."""
    return tuple({tree[0]: tree for tree in trees}.values())


TREES = st.recursive(
    st.tuples(st.integers(1, 9), st.integers(0, 900), st.just(())),
    lambda inner: st.tuples(
        st.integers(1, 9), st.integers(0, 900), st.lists(inner, max_size=4).map(distinct)
    ),
    max_leaves=25,
)


@pytest.mark.native
@given(tree=TREES)
def test_stack_and_key_are_the_original_s(tree):
    inner, end = words_of(tree, 100)
    words = [(True, DISPATCH, 100), *inner, (False, DISPATCH, end)]
    expected = trimmed(original(words))
    rows, key, _ = exported(words)
    assert rows == expected
    assert key == stack_key(expected, end - 100)


def row(cost_ms: int, depth: int = 1, number: int = 1) -> MatrixRow:
    return MatrixRow(depth, number, 1, cost_ms)


def test_short_rows_go_from_the_end_on_until_there_are_thirty():
    rows = [row(4, number=1), *(row(50, number=n) for n in range(2, 31)), row(4, number=31)]
    assert [one.id for one in trimmed(rows)] == [*range(1, 31)]


def test_rows_that_are_all_long_are_cut_after_the_thirtieth():
    assert [one.id for one in trimmed([row(400, number=n) for n in range(40)])] == [*range(30)]


@pytest.mark.parametrize(
    ("rows", "cost", "key"),
    [
        ([], 0, ""),
        ([row(10, 0, DISPATCH)], 100, f"{DISPATCH}|"),
        ([row(100, 0, DISPATCH), row(30, 1, 5)], 100, "5|"),
        ([row(100, 0, DISPATCH), row(29, 1, 5)], 100, f"{DISPATCH}|"),
        ([row(50, 1, 5), row(50, 1, 6)], 100, "5|"),
        ([row(60, 1, 5), row(40, 2, 6)], 100, "5|"),
        ([row(1 << 30, 1, 5), row(1 << 30, 0, 6)], 1 << 30, "6|"),
    ],
    ids=["none", "none heavy", "dispatch is left out", "below 30 %", "the first", "equal", "overflow"],
)
def test_the_key(rows, cost, key):
    assert stack_key(rows, cost) == key
