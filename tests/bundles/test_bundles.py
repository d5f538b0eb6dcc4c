"""What is written into a bundle comes out of it, in bounded memory, and the same bytes each time."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.building.anything import any_of
from tests.building.issues import ISSUES, JANK, START_IN_TIME
from tests.building.stalls import BEGAN, HOSTILE, KILLED, SESSION, STALL, S, hostile_stall
from tests.bundles.samples import NOW, REMARK, bundled, members_of, taken
from tests.report.schema_check import Place, problems

import loopcanary.bundles
from loopcanary.bundles import layout
from loopcanary.bundles.layout import BundleError
from loopcanary.bundles.reading import read_bundle
from loopcanary.bundles.writing import Contents, write_bundle
from loopcanary.model import Issue, Session, SessionEnd, Stall
from loopcanary.wire import from_wire, to_wire

SCHEMA = json.loads(Path(loopcanary.bundles.__file__).with_name("bundle-schema-1.json").read_text("utf-8"))


def test_what_is_bundled_comes_out_as_it_was(tmp_path: Path) -> None:
    found = taken(tmp_path / "a.zip", bundled())
    assert found.stalls == [STALL, KILLED]
    assert found.issues == [JANK]
    assert found.sessions == [replace(SESSION, imported_wall_ns=NOW, imported_from="a.zip")]
    assert found.remarks == {STALL.fingerprint: REMARK}


def within_reason(value: Any) -> Any:
    """The same JSON with numbers that a program can have."""
    if isinstance(value, dict):
        found = {key: within_reason(one) for key, one in value.items()}
        # Frames are late for a part of their time: what is written of both is a share.
        return found | {"late_ms": min(found["late_ms"], found["frame_ms"])} if "late_ms" in found else found
    if isinstance(value, list):
        return [within_reason(one) for one in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return max(min(value, 1 << 40), -(1 << 40))


def test_issues_of_every_kind_come_back(tmp_path: Path) -> None:
    found = taken(tmp_path / "a.zip", bundled(issues=(*ISSUES, START_IN_TIME)))
    assert found.issues == [*ISSUES, START_IN_TIME]


ANY_STALL = any_of(Stall).map(lambda one: from_wire(Stall, within_reason(to_wire(one))))
ANY_SESSION = (
    any_of(Session)
    .map(lambda one: from_wire(Session, within_reason(to_wire(one))))
    # Rates are made of two numbers, each of which is within reason.
    .filter(lambda one: within_reason(to_wire(one)) == to_wire(one))
)


@settings(max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(ANY_STALL, max_size=1), ANY_SESSION)
def test_any_record_comes_out_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, stalls: list[Stall], session: Session
) -> None:
    named = [
        replace(stall, id=f"s-{n}", session="s", fingerprint="1:f", duration_ns=abs(stall.duration_ns))
        for n, stall in enumerate(stalls)
    ]
    known = replace(session, id="s", end=SessionEnd.EXIT, imported_wall_ns=None, imported_from=None)
    found = taken(tmp_path_factory.mktemp("b") / "a.zip", bundled(named, (), [known]))
    assert found.stalls == named
    assert [replace(one, imported_wall_ns=None, imported_from=None) for one in found.sessions] == (
        [known] if named else []
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_that_mean_harm_are_kept_as_they_are(tmp_path: Path, text: str) -> None:
    stall = hostile_stall(text, 1)
    stall = replace(stall, id="s1-7", session="s1", fingerprint="1:f00d")
    assert taken(tmp_path / "a.zip", bundled([stall])).stalls == [stall]


def test_equal_records_make_equal_bytes_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = bundled()
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert bundled() == first
    assert bundled([STALL]) != first


def test_sessions_and_remarks_not_chosen_stay_behind(tmp_path: Path) -> None:
    other = replace(SESSION, id="s2")
    found = taken(tmp_path / "a.zip", bundled([STALL], (), [SESSION, other], {"1:other": REMARK}))
    assert [session.id for session in found.sessions] == ["s1"]
    assert found.remarks == {}


def test_a_bundled_running_session_lasts_to_its_last_sign(tmp_path: Path) -> None:
    running = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None, started_wall_ns=BEGAN, loops=())
    (found,) = taken(tmp_path / "a.zip", bundled([KILLED], (), [running])).sessions
    assert found.end is SessionEnd.RUNNING
    assert not found.is_running
    assert found.ended_wall_ns == KILLED.began_wall_ns + KILLED.duration_ns


def test_the_mark_of_an_import_does_not_travel_on() -> None:
    marked = replace(SESSION, imported_wall_ns=NOW, imported_from="secret-name.zip")
    assert bundled(sessions=[marked]) == bundled(sessions=[SESSION])


def test_the_manifest_is_what_its_schema_says() -> None:
    for data in (bundled(), bundled((), (JANK,), ())):
        manifest = json.loads(members_of(data)["manifest.json"])
        assert list(problems(manifest, SCHEMA, Place(SCHEMA))) == []
    assert manifest["stalls"] == 0
    assert manifest["first_at"] == manifest["last_at"] == "2023-11-14T22:13:20.000000000Z"


def test_the_schema_is_a_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(members_of(bundled())["manifest.json"]), SCHEMA)


def test_only_the_user_can_read_unpacked_members() -> None:
    with zipfile.ZipFile(io.BytesIO(bundled())) as archive:
        assert {info.external_attr >> 16 for info in archive.infolist()} == {0o100600}
        assert archive.testzip() is None


def test_records_go_on_in_the_next_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MEMBER_MAX", 10_000)
    stalls = [replace(STALL, id=f"s1-{n:03}") for n in range(20)]
    data = bundled(stalls)
    assert sum(name.startswith("stalls-") for name in members_of(data)) > 3
    assert taken(tmp_path / "a.zip", data).stalls == stalls


def test_a_bundle_that_no_reader_would_take_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MEMBER_MAX", 1)
    monkeypatch.setattr(layout, "MEMBERS_MAX", 6)
    with pytest.raises(BundleError, match="choose fewer"):
        bundled([replace(STALL, id=f"s1-{n}") for n in range(9)])
    monkeypatch.setattr(layout, "LINE_MAX", 1_000)
    with pytest.raises(BundleError, match="choose fewer"):
        bundled()


def test_more_than_a_bundle_holds_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TOTAL_MAX", 20_000)
    with pytest.raises(BundleError, match="choose fewer"):
        bundled([replace(STALL, id=f"s1-{n}") for n in range(100)])


def test_records_are_written_and_read_one_at_a_time(tmp_path: Path) -> None:
    """Twenty times as many take no more memory, but for their ids."""

    def peak(number: int) -> int:
        def stalls() -> Iterator[Stall]:
            for n in range(number):
                yield replace(STALL, id=f"s1-{n}", began_wall_ns=BEGAN + n * S)

        class Count:
            seen = 0

            def add_issue(self, _: Issue) -> None:
                self.seen += 1

            add_session = add_remark = lambda *_: None

        path, count = tmp_path / f"{number}.zip", Count()
        tracemalloc.start()
        with path.open("wb") as out:
            write_bundle(
                out,
                Contents(issues=stalls(), session=lambda _: SESSION),
                made_by="a test",
            )
        read_bundle(path, count, now_wall_ns=NOW)  # type: ignore[arg-type]
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count.seen == number
        return most

    few = peak(10)
    assert peak(200) < few + 200 * 1_500  # of some 5,000 bytes that each record takes as text alone
