"""When an upload is tried again, and how long it waits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopcanary.uploads.retrying import (
    LONGEST_S,
    Answer,
    RetryVerdict,
    retry_after_s,
    verdict,
    wait_s,
    words_of,
)

NOW_S = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, RetryVerdict.TAKEN) for status in (200, 201, 202, 204, 299)),
        *((status, RetryVerdict.AGAIN) for status in (0, 408, 425, 429, 500, 502, 503, 504, 599)),
        *(
            (status, RetryVerdict.REFUSED)
            for status in (100, 301, 307, 400, 401, 404, 409, 413, 422, 501, 505)
        ),
    ],
)
def test_what_an_answer_means(status: int, expected: RetryVerdict) -> None:
    assert verdict(Answer(status=status)) is expected


def test_no_answer_may_be_final() -> None:
    assert (
        verdict(Answer(status=0, words="its certificate is not trusted", is_final=True))
        is RetryVerdict.REFUSED
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, 0),
        ("", 0),
        ("120", 120),
        (" 7 ", 7),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2023 23:14:20 +0100", 60),
        ("Tue, 14 Nov 2023 22:14:20", 60),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 0),
        ("soon", 0),
        ("-5", 0),
        ("1.5", 0),
        ("\u0665", 0),
        ("9" * 5_000, 999_999_999),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_a_receiver_asks_for(header: str | None, expected: float) -> None:
    assert retry_after_s(header, NOW_S) == expected


@settings(max_examples=50)
@given(st.text() | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d+:\d+:\d+ [-+]?\w+", fullmatch=True))
def test_any_header_is_some_time(header: str) -> None:
    assert retry_after_s(header, NOW_S) >= 0


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_double_up_to_a_bound_and_are_never_less_than_half(attempt: int, chance: float) -> None:
    full = wait_s(attempt, Answer(status=503), now_s=NOW_S, chance=lambda: 0.0)
    some = wait_s(attempt, Answer(status=503), now_s=NOW_S, chance=lambda: chance)
    assert full == min(LONGEST_S, 2.0 ** min(attempt, 100))
    assert full / 2 <= some <= full


@pytest.mark.parametrize("status", [0, 302, 401, 418, 503])
def test_every_answer_has_words(status: int) -> None:
    assert words_of(Answer(status=status, words="the connection failed"))
