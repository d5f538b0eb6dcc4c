from __future__ import annotations

from dataclasses import replace

import pytest
from zoo import catalogue, page, results
from zoo.observation import Frame, Report
from zoo.scoring import Score
from zoo.totals import COLUMNS, cell, row
from zoo.trial import Trial

LINE = Score(detected=True, function=True, line=True, cause=True)
FUNCTION = Score(detected=True, function=True, line=False, cause=False)
MISSED = Score(detected=False, function=False, line=False, cause=False)
ABOUT = {
    "machine": {"python": "3.12.1", "system": "Linux", "machine": "x86_64", "cores": 2},
    "made_at": "today",
    "versions": {"loopcanary": "0.1.0"},
    "absent": ["loopsentry"],
}


def trial(score=LINE, kind="sleep", watcher="loopcanary", outcome="played", **more):
    return Trial(kind=kind, watcher=watcher, loop="asyncio", outcome=outcome, score=score, **more)


@pytest.mark.parametrize(
    ("scores", "letters"),
    [
        ([LINE, LINE], "Lc"),
        ([LINE, FUNCTION], "L/F"),
        ([MISSED], "-"),
        ([Score(detected=True, function=False, line=False)], "D"),
        ([Score(detected=True, function=True, line=True, cause=True, holder=True)], "Lct"),
        ([Score(false_alarms=0), Score(false_alarms=0)], "0"),
        ([Score(false_alarms=2), Score(false_alarms=1)], "3"),
        ([Score()], "?"),
    ],
)
def test_a_cell_says_how_far_it_came(scores, letters):
    assert cell([trial(score) for score in scores]) == letters


def test_cells_of_what_was_not_played():
    assert cell([]) == ""
    assert cell([trial(outcome="skipped")]) == "n/a"
    assert cell([trial(outcome="failed")]) == "!"


@pytest.mark.parametrize(("error_ms", "text"), [(0.0621, "0.062 ms"), (9.96, "10 ms"), (112.3, "112 ms")])
def test_a_median_error_has_two_digits_and_no_exponent(error_ms, text):
    scored = Score(detected=True, function=True, line=True, duration_error_ms=error_ms)
    titles = [column.title for column in COLUMNS]
    found = dict(zip(titles, row([trial(scored)], judged_by_targets=False), strict=True))
    assert found["median error"].text == text


def test_a_row_has_a_figure_for_each_column_and_misses_are_known():
    found = dict(
        zip(
            [column.title for column in COLUMNS],
            row([trial(), trial(FUNCTION)], judged_by_targets=True),
            strict=True,
        )
    )
    assert found["detected"].reached is True
    assert found["line"].reached is False
    assert found["line"].text == "50% of 2"
    assert found["false alarms"].text == "-"
    assert found["false alarms"].reached is None


def test_a_kind_is_one_bug_if_all_its_runs_were_counted_so():
    titles = [column.title for column in COLUMNS]
    one, other = (replace(LINE, bug=bug) for bug in ("3:one", "3:other"))
    trials = [trial(one), trial(one), trial(kind="regex"), trial(one, kind="fsync")]
    assert row(trials, judged_by_targets=True)[titles.index("one bug")].text == "100% of 1"
    split = [*trials, trial(other)]
    assert row(split, judged_by_targets=True)[titles.index("one bug")].reached is False
    assert page.misses(split, catalogue.read_all()) == ["sleep on asyncio: counted as 2 bugs"]


def test_a_share_is_not_rounded_up():
    figures = row([trial()] * 299 + [trial(FUNCTION)], judged_by_targets=True)
    assert figures[[column.title for column in COLUMNS].index("line")].text == "99% of 300"


def test_only_loopcanary_is_held_to_the_targets():
    assert {figure.reached for figure in row([trial(MISSED)], judged_by_targets=False)} == {None}


def test_the_page_keeps_what_is_around_the_figures(tmp_path):
    path = tmp_path / "zoo.md"
    path.write_text(f"# Before\n{page.BEGIN}\nfigures of yesterday\n{page.END}\nafter\n")
    page.write(path, [trial(), trial(MISSED, watcher="pyleak")], catalogue.read_all(), ABOUT)
    text = path.read_text()
    assert text.startswith(f"# Before\n{page.BEGIN}\n")
    assert text.endswith(f"{page.END}\nafter\n")
    assert "yesterday" not in text
    assert "| loopcanary 0.1.0 | 100% of 1 |" in text
    assert "| loopsentry: not installed |" in text


def test_a_page_without_marks_is_left_alone(tmp_path):
    path = tmp_path / "other.md"
    path.write_text("text")
    with pytest.raises(ValueError, match="where the figures belong"):
        page.write(path, [trial()], catalogue.read_all(), ABOUT)
    assert path.read_text() == "text"


def test_what_went_wrong_is_said_in_words():
    kinds = catalogue.read_all()
    wrong = trial(
        Score(detected=True, function=True, line=True, cause=False, holder=False),
        kind="lock_held",
        reports=[Report(frames=(Frame("/zoo/lock_held.py", "read_price", 22),), causes=("sleep",))],
    )
    assert page.misses([wrong, wrong], kinds) == [
        (
            "lock_held on asyncio: cause sleep instead of lock; "
            "guilty thread none instead of updater in update_prices (2 times)"
        )
    ]
    alarm = trial(Score(false_alarms=1), kind="ok_idle", reports=[Report(causes=("lock",))])
    assert page.misses([alarm], kinds) == ["ok_idle on asyncio: reported lock"]
    assert page.misses([trial()], kinds) == []


def test_results_are_read_as_they_were_written(tmp_path):
    report = Report(
        frames=(Frame("/a.py", "f", 1),), causes=("gil",), holder=Frame("/b.py", "g", 2), duration_ms=1.5
    )
    trials = [trial(reports=[report], truth_ms=1.0), trial(outcome="failed", note="why")]
    results.write(tmp_path / "new" / "results.json", trials, ABOUT)
    assert results.read(tmp_path / "new" / "results.json") == (trials, ABOUT)
    assert results.read(tmp_path / "none.json") == ([], {})


def test_results_of_what_is_played_anew_are_replaced():
    old = [trial(), trial(watcher="pyleak"), trial(kind="regex")]
    assert results.without(old, [("sleep", "loopcanary", "asyncio")]) == old[1:]
