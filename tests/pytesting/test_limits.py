"""What a test is allowed, and what the options and markers may say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.building.stalls import CULPRIT, STALL, stall

from loopcanary.model import Blocker, Cause, Holder
from loopcanary.pytesting.limits import Limit, duration_ns, limit_of

MS = 1_000_000
READS = stall(
    id="s1-2",
    fingerprint="1:read",
    cause=Cause.DISK_IO,
    blocker=Blocker(call="file.read()", function=None),
    duration_ns=900 * MS,
)


def marked(*args: Any, **options: Any) -> Any:
    marker = SimpleNamespace(args=args, kwargs=options)
    return SimpleNamespace(nodeid="tests/a.py::test_b", get_closest_marker=lambda _: marker)


def test_the_longest_comes_first() -> None:
    assert Limit(100 * MS).broken_by([STALL, READS], frozenset()) == [READS, STALL]
    assert Limit(500 * MS).broken_by([STALL, READS], frozenset()) == [READS]
    assert Limit(STALL.duration_ns).broken_by([STALL], frozenset()) == [STALL]
    assert Limit(None).broken_by([STALL, READS], frozenset()) == []


def test_what_the_host_did_breaks_no_limit() -> None:
    by_the_host = stall(id="s1-3", cause=Cause.HOST)
    assert Limit(0).broken_by([by_the_host, STALL], frozenset()) == [STALL]


def test_what_loopcanary_did_breaks_no_limit() -> None:
    drain = Holder(thread="loopcanary-drain", culprit=None)
    by_us = stall(id="s1-4", cause=Cause.GIL, holder=drain)
    by_another = stall(id="s1-5", cause=Cause.GIL, holder=Holder(thread="worker", culprit=None))
    assert Limit(0).broken_by([by_us, by_another], frozenset()) == [by_another]


def test_known_bugs_break_no_limit() -> None:
    assert Limit(0).broken_by([STALL, READS], frozenset({"1:read"})) == [STALL]


@pytest.mark.parametrize(
    "pattern",
    ["disk-io", "file.read", "file.read()", CULPRIT.qualname, "Orders.*", "*/shop/orders.py", STALL.title],
)
def test_allowed_is_a_cause_a_call_a_function_or_a_file(pattern: str) -> None:
    assert READS not in Limit(0, (pattern,)).broken_by([READS], frozenset())
    assert Limit(0, ("requests.*",)).broken_by([READS], frozenset()) == [READS]


def test_a_marker_is_nearer_than_the_option() -> None:
    assert limit_of(marked(max_stall="50ms"), 200 * MS) == Limit(50 * MS)
    assert limit_of(marked(allow=["dns"]), 200 * MS) == Limit(200 * MS, ("dns",))
    item: Any = SimpleNamespace(get_closest_marker=lambda _: None)
    assert limit_of(item, 200 * MS) == Limit(200 * MS)


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        (marked("50ms"), "takes max_stall and allow, not values without a name"),
        (marked(max_stal="1s"), "takes max_stall and allow, not max_stal"),
        (marked(max_stall=50), "max_stall: 50 is not a duration such as '50ms'"),
        (marked(max_stall="soon"), "max_stall: 'soon' is not a duration"),
        (marked(allow="json.loads"), "allow is a list of texts"),
        (marked(allow=[1]), "allow is a list of texts"),
    ],
)
def test_a_marker_that_is_wrong_is_named(marker: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^tests/a.py::test_b: .*{words}"):
        limit_of(marker, None)


def test_a_duration_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="--loopcanary-fail: '5' is not a duration"):
        duration_ns("5", "--loopcanary-fail")
