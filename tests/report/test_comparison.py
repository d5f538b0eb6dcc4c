"""What became of groups between two sides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.issues import STARTUP
from tests.building.stalls import BEGAN, CULPRIT, HOSTILE, MS, STALL, S, hostile_stall, session, stall
from tests.report.schema_check import Place, problems
from tests.report.test_report import GOLDEN, RAW, golden, on_screen

import loopcanary.report
from loopcanary.document import markdown
from loopcanary.model import Cause, Holder, Session, Stall, StartKind
from loopcanary.model.search import IssueQuery
from loopcanary.report.diff import comparison as comparison_module
from loopcanary.report.diff import json as diff_json
from loopcanary.report.diff.comparison import Change, Comparison, Side, compare
from loopcanary.report.diff.document import diff_document
from loopcanary.store import Retention, Store

H = 3_600 * S
NOW = BEGAN + 100 * H
SCHEMA = json.loads(
    (Path(loopcanary.report.__file__).parent / "diff" / "diff-schema-1.json").read_text("utf-8")
)


def ran(session_id: str, begin_h: float = 0, end_h: float = 10, **facts: object) -> Session:
    return session(
        id=session_id, started_wall_ns=BEGAN + int(begin_h * H), ended_wall_ns=BEGAN + int(end_h * H), **facts
    )


def spread(of: Session, count: int, *, duration_ms: int = 400, bug: str = "1:f00d") -> Iterator[Stall]:
    """Stalls at equal distances over the session."""
    assert of.ended_wall_ns is not None
    length = of.ended_wall_ns - of.started_wall_ns
    for k in range(count):
        yield stall(
            id=f"{of.id}-{bug}-{k}",
            session=of.id,
            fingerprint=bug,
            title=f"the stall of {bug}",
            began_wall_ns=of.started_wall_ns + (2 * k + 1) * length // (2 * count),
            duration_ns=duration_ms * MS,
        )


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    made = tuple(Store(tmp_path / name, retention=Retention(age_ns=1 << 62)) for name in "ab")
    yield made[0], made[1]
    for store in made:
        store.close()


def compared(stores: tuple[Store, Store], **changes: object) -> Comparison:
    sides = [
        replace(Side(source=store.reader, query=IssueQuery(), label=name), **changes)
        for store, name in zip(stores, "AB", strict=True)
    ]
    return compare(sides[0], sides[1], now_wall_ns=NOW)


def changes(comparison: Comparison) -> dict[str, tuple[Change, bool]]:
    return {one.fingerprint: (one.change, one.is_sure) for one in comparison.groups}


def put(store: Store, of: Session, *groups: Iterator[Stall]) -> None:
    store.put([of], [one for group in groups for one in group])


@pytest.fixture
def all_kinds(stores: tuple[Store, Store]) -> tuple[Store, Store]:
    before, after = ran("a"), ran("b")
    put(
        stores[0],
        before,
        spread(before, 40, bug="1:gone"),
        spread(before, 2, bug="1:gone-by-chance"),
        spread(before, 20, bug="1:worse"),
        spread(before, 60, bug="1:better"),
        spread(before, 20, bug="1:longer", duration_ms=200),
        spread(before, 30, bug="1:same"),
    )
    put(
        stores[1],
        after,
        spread(after, 30, bug="1:new"),
        spread(after, 1, bug="1:new-by-chance"),
        spread(after, 60, bug="1:worse"),
        spread(after, 20, bug="1:better"),
        spread(after, 20, bug="1:longer", duration_ms=900),
        spread(after, 34, bug="1:same"),
    )
    return stores


def test_sure_changes_for_the_worse_come_first(
    all_kinds: tuple[Store, Store],
) -> None:
    found = compared(all_kinds)
    assert changes(found) == {
        "1:new": (Change.NEW, True),
        "1:worse": (Change.WORSE, False),
        "1:longer": (Change.WORSE, False),
        "1:new-by-chance": (Change.NEW, False),
        "1:gone": (Change.GONE, True),
        "1:gone-by-chance": (Change.GONE, False),
        "1:better": (Change.BETTER, False),
        "1:same": (Change.UNCHANGED, False),
    }
    assert [one.fingerprint for one in found.groups][:4] == [
        "1:new",
        "1:worse",
        "1:longer",
        "1:new-by-chance",
    ]
    assert found.is_worse


def test_rates_are_per_watched_hour(stores: tuple[Store, Store]) -> None:
    """Ten times as many stalls in ten times as long are no change."""
    short, long = ran("a", 0, 10), ran("b", 0, 100)
    put(stores[0], short, spread(short, 20))
    put(stores[1], long, spread(long, 200))
    found = compared(stores)
    assert changes(found) == {"1:f00d": (Change.UNCHANGED, False)}
    [one] = found.groups
    assert one.before.count_per_hour == pytest.approx(one.after.count_per_hour)
    assert one.ratio.low < 1 < one.ratio.high


def test_new_is_unsure_if_the_other_side_was_short(stores: tuple[Store, Store]) -> None:
    short, long = ran("a", 0, 0.1), ran("b", 0, 10)
    put(stores[0], short)
    put(stores[1], long, spread(long, 50))
    found = compared(stores)
    assert changes(found) == {"1:f00d": (Change.NEW, False)}
    assert not found.is_worse
    assert "could be chance: A was watched for 6 m 0 s only" in text_of(found)


def test_the_time_of_other_programs_does_not_count(stores: tuple[Store, Store]) -> None:
    """A worker that ran for long beside the shop does not make the shop's stalls rarer."""
    shop, worker, after = ran("a"), ran("w", 0, 100, name="worker"), ran("b")
    put(stores[0], shop, spread(shop, 20))
    put(stores[0], worker, spread(worker, 1, bug="1:other"))
    put(stores[1], after, spread(after, 20))
    [one] = [one for one in compared(stores).groups if one.fingerprint == "1:f00d"]
    assert one.change is Change.UNCHANGED
    assert one.before.hours == pytest.approx(10)


def test_a_new_program_is_compared_with_nothing(
    stores: tuple[Store, Store],
) -> None:
    before, after = ran("a"), ran("b", name="worker")
    put(stores[0], before)
    put(stores[1], after, spread(after, 50))
    found = compared(stores)
    assert changes(found) == {"1:f00d": (Change.NEW, False)}
    assert "its program did not run in A" in text_of(found)


def test_one_burst_is_not_worse(stores: tuple[Store, Store]) -> None:
    """Fifty stalls in one minute of ten hours are one event."""
    before, after = ran("a"), ran("b")
    put(stores[0], before, spread(before, 3))
    burst = [replace(one, began_wall_ns=BEGAN + 9 * H + k * S) for k, one in enumerate(spread(after, 50))]
    put(stores[1], after, iter(burst))
    assert changes(compared(stores)) == {"1:f00d": (Change.UNCHANGED, False)}


def test_a_session_that_spans_the_moment_counts_on_both_sides(stores: tuple[Store, Store]) -> None:
    source, whole = stores[0], ran("a")
    put(source, whole, spread(whole, 40))
    noon = BEGAN + 4 * H
    sides = [
        Side(source=source.reader, query=IssueQuery(until_wall_ns=noon), label="before"),
        Side(source=source.reader, query=IssueQuery(since_wall_ns=noon), label="after"),
    ]
    found = compare(*sides, now_wall_ns=NOW)
    assert (found.before.hours, found.after.hours) == (pytest.approx(4), pytest.approx(6))
    [one] = found.groups
    assert (one.before.count, one.after.count, one.change) == (16, 24, Change.UNCHANGED)


def test_the_worst_are_described_and_all_counted(all_kinds: tuple[Store, Store]) -> None:
    whole = compared(all_kinds)
    sides = [
        Side(source=store.reader, query=IssueQuery(), label=name)
        for store, name in zip(all_kinds, "AB", strict=True)
    ]
    found = compare(*sides, now_wall_ns=NOW, limit=2)
    assert len(whole.groups) > 2
    assert found.groups == whole.groups[:2]
    assert found.counts == whole.counts
    assert found.is_worse == whole.is_worse
    assert (found.before, found.after) == (whole.before, whole.after)


def test_very_many_runs_are_compared(stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    source = stores[0]
    for number in range(4):
        of = ran(f"s{number}", number * 10, number * 10 + 10, version="1" if number < 3 else "2")
        put(source, of, spread(of, 30))
    sides = [Side(source=source.reader, query=IssueQuery(), label=one, version=one) for one in ("1", "2")]
    by_name = compare(*sides, now_wall_ns=NOW)
    monkeypatch.setattr(comparison_module, "_ASKED_BY_NAME_MAX", 2)
    assert compare(*sides, now_wall_ns=NOW) == by_name
    assert (by_name.before.stalls, by_name.after.stalls) == (90, 30)


@pytest.mark.parametrize("cause", [Cause.GIL, Cause.LOCK])
def test_a_wait_is_placed_at_the_line_of_its_holder(stores: tuple[Store, Store], cause: Cause) -> None:
    of = ran("a")
    hog = replace(CULPRIT, file="/srv/shop/hog.py", function="hog")
    holder = Holder(thread="pool-1", culprit=hog)
    put(stores[0], of, (replace(one, cause=cause, holder=holder) for one in spread(of, 3)))
    said = f"/srv/shop/hog.py:87 in hog held the {'GIL' if cause is Cause.GIL else 'lock'}"
    assert said in text_of(compared(stores))


def test_versions_of_one_store(stores: tuple[Store, Store]) -> None:
    source = stores[0]
    for name, version, count in (("a", "1.1", 5), ("b", "1.2", 60), ("c", "1.3", 500)):
        of = ran(name, version=version)
        put(source, of, spread(of, count))
    sides = [
        Side(source=source.reader, query=IssueQuery(), label=version, version=version)
        for version in ("1.1", "1.2")
    ]
    [one] = compare(*sides, now_wall_ns=NOW).groups
    assert (one.before.count, one.after.count, one.change) == (5, 60, Change.WORSE)


# ---- starts --------------------------------------------------------------------------------------


def started(store: Store, *lengths_ms: int, pandas_ms: int = 0, **changes: object) -> None:
    for number, length_ms in enumerate(lengths_ms):
        run = ran(f"run{number}", number, number + 1)
        store.put([run], [])
        imports = tuple(
            replace(STARTUP.phases[3], name=name, self_ns=own_ms * MS, depth=0)
            for name, own_ms in {"shop": 20, "pandas": pandas_ms}.items()
            if own_ms
        )
        facts = {
            "id": f"start{number}",
            "session": run.id,
            "began_wall_ns": run.started_wall_ns,
            "phases": imports,
        }
        store.put_issue(replace(STARTUP, duration_ns=length_ms * MS, **facts | changes))


def test_starts_that_became_slower_name_the_import(stores: tuple[Store, Store]) -> None:
    started(stores[0], 500, 520, 510, pandas_ms=0)
    started(stores[1], 900, 880, 910, pandas_ms=400)
    (one,) = compared(stores).starts
    assert (one.before.count, one.before.median_ns, one.after.median_ns) == (3, 510 * MS, 900 * MS)
    assert one.is_sure
    assert [(found.name, found.before_ns, found.after_ns) for found in one.imports] == [
        ("pandas", 0, 400 * MS)
    ]
    text = text_of(compared(stores), width=120)
    assert "cold start  shop" in text
    assert "510 ms (3 starts) -> 900 ms (3 starts), x1.76" in text
    assert "pandas, new, 400 ms" in text
    document = json.loads(diff_json.render(compared(stores)))
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    assert document["starts"][0]["after"]["max_ms"] == 910


@pytest.mark.parametrize(
    ("after", "is_sure"), [((600, 610), False), ((505, 700, 800), False), ((600, 700, 800), True)]
)
def test_what_chance_could_do_to_starts_is_said(
    stores: tuple[Store, Store], after: tuple[int, ...], is_sure: bool
) -> None:
    started(stores[0], 500, 520, 510)
    started(stores[1], *after)
    (one,) = compared(stores).starts
    assert one.is_sure is is_sure
    assert ("could be chance" in text_of(compared(stores))) is not is_sure


def test_only_starts_of_one_kind_and_program_are_compared(stores: tuple[Store, Store]) -> None:
    started(stores[0], 500)
    started(stores[1], 900, start=StartKind.WARM)
    assert compared(stores).starts == ()
    started(stores[1], 900, cut=True)
    assert compared(stores).starts == ()


# ---- forms ---------------------------------------------------------------------------------------


def text_of(comparison: Comparison, limit: int = 20, width: int = 80) -> str:
    return on_screen(diff_document(comparison, limit), width=width)


def test_as_text(all_kinds: tuple[Store, Store]) -> None:
    golden("diff.txt", text_of(compared(all_kinds)))
    cut = text_of(compared(all_kinds), limit=2)
    assert "and 6 more bugs (--limit 0 shows all)" in cut
    assert "2 new, 2 worse, 1 better, 2 gone, 1 unchanged" in cut


def test_as_markdown(all_kinds: tuple[Store, Store]) -> None:
    golden("diff.md", markdown.render(diff_document(compared(all_kinds)), "/srv/shop"))
    assert GOLDEN.is_dir()


def test_as_json(all_kinds: tuple[Store, Store]) -> None:
    document = json.loads(diff_json.render(compared(all_kinds)))
    assert list(problems(document, SCHEMA, Place(SCHEMA))) == []
    assert document["counts"] == {"new": 2, "worse": 2, "better": 1, "gone": 2, "unchanged": 1}
    assert len(json.loads(diff_json.render(compared(all_kinds), limit=3))["groups"]) == 3


def test_nothing_on_either_side(stores: tuple[Store, Store]) -> None:
    found = compared(stores)
    assert not found.is_worse
    assert "No stall on either side." in text_of(found)
    assert list(problems(json.loads(diff_json.render(found)), SCHEMA, Place(SCHEMA))) == []


def test_a_side_with_more_load_is_marked(stores: tuple[Store, Store]) -> None:
    before, after = ran("a"), ran("b")
    busy = tuple(replace(loop, callbacks=10 * loop.callbacks) for loop in after.loops)
    put(stores[0], before, spread(before, 3))
    put(stores[1], replace(after, loops=busy), spread(after, 30))
    assert "B ran 10 times as many callbacks per second as A" in text_of(compared(stores))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_reaches_a_reader_raw(stores: tuple[Store, Store], text: str) -> None:
    put(stores[0], ran("s1", name=text), iter([hostile_stall(text)]))
    put(stores[1], ran("s1", name=text), iter([hostile_stall(text), STALL]))
    found = compared(stores, label=text)
    for shown in (text_of(found), markdown.render(diff_document(found)), diff_json.render(found)):
        assert RAW.search(shown) is None


def test_every_field_of_the_schema_is_on_its_page(tree: Path) -> None:
    page = (tree / "docs/how-to/comparing.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9_]+)`", page))
    parts = [SCHEMA, *(part for name, part in SCHEMA["$defs"].items() if name != "culprit")]
    fields = {name for part in parts for name in part.get("properties", {})}
    assert fields <= named, fields - named
