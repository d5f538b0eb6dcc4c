"""Outcomes of tests of others, plain and watched: what is a difference, and what is chance."""

from __future__ import annotations

import json

import pytest
from suite_outcomes import Runs, Verdict, differing, judge, read, without
from suite_table import BEGIN, END, Difference, Row, lines, read_rows, with_row, write_page, write_rows

P, F = "passed", "failed"


def written(*facts):
    return read([json.dumps(fact) for fact in facts])


def test_the_worst_outcome_of_a_test_counts():
    assert written(["a", "begun"], ["a", P], ["a", F], ["b", "begun"], ["b", P]) == {"a": F, "b": P}


def test_a_test_that_only_began_has_no_end():
    assert written(["a", "begun"]) == {"a": "no end"}


def test_addresses_in_ids_do_not_differ():
    assert written(["a[<f at 0x7f00deadbeef>]", P]) == written(["a[<f at 0x7f00cafe0000>]", P])


def test_a_test_of_one_side_alone_differs():
    assert differing({"a": P, "b": P}, {"a": P, "c": F}) == ["b", "c"]


def test_what_is_left_out_is_named_by_its_beginning():
    assert without({"a.x": P, "a.y": F, "b": P}, {"a.": "a reason"}) == {"b": P}


VERDICTS = {
    "it fails whenever it is watched": ((P,), (P,) * 5, (F,), (F,) * 5, Verdict.DIFFERENT),
    "it fails at times, and only watched": ((P,), (P,) * 5, (F,), (F, P, P, P, P), Verdict.DIFFERENT),
    "plain fails at times, watched always": ((P,), (P, F, P, P, P), (F,), (F,) * 5, Verdict.DIFFERENT),
    "both fail at times": ((P,), (P, F, P, P, P), (F,), (F, P, P, F, P), Verdict.FLAKY),
    "plain fails at times, watched never": ((F,), (P, F, P, P, P), (P,), (P,) * 5, Verdict.FLAKY),
    "alone it never fails": ((P,), (P,) * 5, (F,), (P,) * 5, Verdict.UNDECIDED),
    "it failed once in three suites": ((P, P, P), (P,) * 5, (F, P, P), (P,) * 5, Verdict.ONCE),
    "it fails again in the suite": ((P, P, P), (P,) * 5, (F, P, F), (P,) * 5, Verdict.DIFFERENT),
    "a status differs, of one suite": (("0",), (), ("1",), (), Verdict.UNDECIDED),
    "a status differs again": (("0", "0"), (), ("1", "1"), (), Verdict.DIFFERENT),
    "it skips whenever it is watched": ((P,), (P,) * 5, ("skipped",), ("skipped",) * 5, Verdict.DIFFERENT),
}


@pytest.mark.parametrize("story", VERDICTS)
def test_a_difference_is_no_chance(story):
    plain, plain_alone, watched, watched_alone, verdict = VERDICTS[story]
    assert judge(Runs(whole=plain, alone=plain_alone), Runs(whole=watched, alone=watched_alone)) is verdict


def row(**values):
    return Row(
        **{
            "suite": "trio",
            "version": "0.35.0",
            "python": "3.12.1",
            "tests": 2,
            "outcomes": "2 passed",
            "cpu_plain_s": 10.0,
            "cpu_watched_s": 11.0,
            "processes": 3,
            "turns": 4_000,
            "differences": (),
            **values,
        }
    )


def test_rows_are_kept_and_replaced_by_suite_and_python(tmp_path):
    difference = Difference(test="a", plain=Runs(whole=(P,), alone=(P,)), watched=Runs(whole=(F,)))
    rows = with_row([row(), row(python="3.13.0")], row(python="3.12.4", differences=(difference,)))
    write_rows(tmp_path / "rows.json", rows)
    assert read_rows(tmp_path / "rows.json") == rows
    assert [one.python for one in rows] == ["3.12.4", "3.13.0"]


def test_the_page_gets_its_tables_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    difference = Difference(
        test="a|b", plain=Runs(whole=(P,), alone=(P,)), watched=Runs(whole=(F,), alone=(F,))
    )
    write_page(page, [row(differences=(difference,))])
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| trio 0.35.0 | 3.12.1 | 2 | **no**, 1 different (2 passed) | 10.0 | 11.0 | 1.10 |" in text
    assert "| trio 0.35.0 | `a&#124;b` | different | passed 2 of 2 | failed 2 of 2 |" in text


def test_a_suite_of_which_no_test_ran_is_no_success():
    nothing = row(tests=0, outcomes="")
    assert nothing.is_different
    assert not any("yes" in line for line in lines([nothing]))
