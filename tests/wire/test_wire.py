from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.anything import any_of
from tests.building.issues import ISSUES, JANK
from tests.building.stalls import BEGAN, KILLED, SESSION, STALL

from loopcanary.model import (
    IdleLag,
    ImportedFinding,
    InputLag,
    Jank,
    LagIssue,
    Session,
    SlowMethod,
    Stall,
    Startup,
)
from loopcanary.protocols.kinds import issue_from_wire
from loopcanary.wire import WireError, from_wire, time_from_text, time_to_text, to_wire


@given(any_of(Stall))
def test_a_stall_comes_back_from_json_as_it_was(stall: Stall) -> None:
    assert from_wire(Stall, json.loads(json.dumps(to_wire(stall)))) == stall


@given(
    st.one_of(
        any_of(Jank),
        any_of(InputLag),
        any_of(IdleLag),
        any_of(Startup),
        any_of(SlowMethod),
        any_of(ImportedFinding),
    )
)
def test_an_issue_comes_back_from_json_as_it_was(issue: LagIssue) -> None:
    assert issue_from_wire(json.loads(json.dumps(to_wire(issue)))) == issue


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "stall"),
        ("kind", "sqlite"),
        ("duration_ms", "long"),
        ("frames", None),
        ("frames", {**to_wire(JANK)["frames"], "refresh_hz": 0}),
        ("worst", [1]),
        ("stall_ids", [1]),
    ],
)
def test_what_is_no_issue_is_refused(field: str, value: object) -> None:
    with pytest.raises(WireError):
        issue_from_wire({**to_wire(JANK), field: value})


@given(any_of(Session))
def test_a_session_comes_back_from_json_as_it_was(session: Session) -> None:
    assert from_wire(Session, json.loads(json.dumps(to_wire(session)))) == session


@given(st.integers(-62_135_596_800 * 10**9, 253_402_300_799 * 10**9))
def test_a_time_comes_back_to_the_nanosecond(wall_ns: int) -> None:
    assert time_from_text(time_to_text(wall_ns)) == wall_ns


@pytest.mark.parametrize(
    ("wall_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000000Z"),
        (BEGAN + 1, "2023-11-14T22:13:20.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (1 << 80, "9999-12-31T23:59:59.999999999Z"),
        (-(1 << 80), "0001-01-01T00:00:00.000000000Z"),
    ],
)
def test_times_are_rfc_3339_and_stay_within_its_years(wall_ns: int, text: str) -> None:
    assert time_to_text(wall_ns) == text


def test_times_of_others_may_have_an_offset_and_fewer_decimals() -> None:
    assert time_from_text("1970-01-01T01:00:00.5+01:00") == 500_000_000
    assert time_from_text("1970-01-01 00:00:01z") == 1_000_000_000


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2023-11-14", "2023-13-14T00:00:00Z", "2023-11-14T00:00:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        time_from_text(text)


def test_a_stall_of_an_older_writer_has_defaults() -> None:
    old = to_wire(STALL)
    added_to_stalls = ("title", "scope", "queue_ms", "threads", "engine", "grade", "holders", "portions")
    added_later = ("waited_on", "contributors", "surroundings", "startup", "cause_share", "timeline")
    for added in (*added_to_stalls, *added_later):
        del old[added]
    del old["culprit"]["column"], old["culprit"]["end_column"], old["culprit"]["qualname"]
    read = from_wire(Stall, old)
    assert (read.title, read.threads, read.engine, read.timeline) == ("", (), "native", None)
    assert read.culprit is not None
    assert read.culprit.qualname == "load_orders"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", None, "stall.id: must be text, not NoneType"),
        ("pid", True, "stall.pid: must be a whole number, not bool"),
        ("duration_ms", "long", "stall.duration_ms: must be a number, not str"),
        ("duration_ms", float("nan"), "stall.duration_ms: must be a number, not float"),
        ("began_at", "soon", "stall.began_at: 'soon' is not an RFC 3339 time"),
        ("cause", "magic", "stall.cause: 'magic' is not a cause"),
        ("culprit", [], "stall.culprit: must be an object, not list"),
        (
            "stacks",
            [{"weight_ms": 1, "frames": [{}]}],
            "stall.stacks[0].frames[0].function: must be text, not nothing",
        ),
        ("evidence", ["a", 1], "stall.evidence: must be a list of texts"),
        (
            "timeline",
            {"spans": [{"offset_ms": 0, "length_ms": 1, "activity": 0}]},
            "stall.timeline.spans[0].activity: there is no activity 0",
        ),
        ("timeline", {"activities": [{}]}, "stall.timeline.activities[0].doing: must be text, not nothing"),
        (
            "timeline",
            {"earlier": [{"ago_ms": 0, "length_ms": 0, "short_callbacks": "x"}]},
            "stall.timeline.earlier[0].short_callbacks: must be a whole number, not str",
        ),
        ("ledger", None, "stall.ledger: must be an object, not NoneType"),
    ],
)
def test_what_breaks_the_contract_is_refused_by_name(field: str, value: object, message: str) -> None:
    with pytest.raises(WireError) as caught:
        from_wire(Stall, {**to_wire(KILLED), field: value})
    assert str(caught.value).startswith(message)


def test_a_span_whose_stack_was_taken_out_has_none() -> None:
    read = from_wire(Stall, {**to_wire(STALL), "stacks": []})
    assert read.timeline is not None
    assert [span.stack for span in read.timeline.spans] == [None, None, None]


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(WireError):
        from_wire(Stall, value)
    with pytest.raises(WireError):
        from_wire(Session, value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    ),
    st.sampled_from(sorted(to_wire(STALL))),
)
def test_no_json_raises_anything_but_wire_error(value: object, field: str) -> None:
    try:
        from_wire(Stall, {**to_wire(STALL), field: value})
        from_wire(Session, {**to_wire(SESSION), "loops": value})
    except WireError:
        pass


def test_numbers_that_no_float_holds_are_refused() -> None:
    for number in (10**400, 1e305):
        with pytest.raises(WireError, match=r"stall\.duration_ms: must be a number"):
            from_wire(Stall, {**to_wire(STALL), "duration_ms": number})


def test_an_issue_is_read_by_its_kind() -> None:
    with pytest.raises(WireError, match=r"issue\.kind: 'magic' cannot be read: no installed plugin reads it"):
        issue_from_wire({**to_wire(JANK), "kind": "magic"})
    assert [type(issue_from_wire(to_wire(issue))) for issue in ISSUES] == [type(issue) for issue in ISSUES]


def test_a_value_that_is_read_already_stays() -> None:
    assert from_wire(Stall, {**to_wire(STALL), "stacks": STALL.stacks}).stacks == STALL.stacks
