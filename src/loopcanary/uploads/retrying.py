"""When a request is tried again, and when it is given up. Pure; times in seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum

from loopcanary.late_dataclass import dataclass

FIRST_S, LONGEST_S = 1.0, 60.0
ATTEMPTS = 8
PATIENCE_S = 600.0
"""A receiver that asks to come back later than this gets another run of the command."""
_AGAIN = frozenset({408, 425, 429})
"""Of 4xx, those that say nothing of the request: RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4."""
_NEVER = frozenset({501, 505})

_WORDS = {
    400: "the receiver does not understand bundles: is this the right address?",
    401: "the receiver wants to know who you are: set LOOPCANARY_UPLOAD_TOKEN, or --token-file",
    403: "the receiver does not let you: is the token the right one, and may it upload?",
    404: "there is nothing at this address",
    405: "what is at this address takes no POST",
    409: "the receiver holds something else under this bundle's key",
    410: "there is nothing at this address any more",
    411: "the receiver does not see how long the bundle is: is there a proxy between?",
    413: "the bundle is too large for the receiver: use a smaller --part-size",
    415: "the receiver takes no zip files",
    422: "the receiver does not take this bundle",
}


class RetryVerdict(Enum):
    """What an answer means."""

    TAKEN = "taken"
    AGAIN = "again"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; `status` 0: nothing did, and `words` say what happened instead."""

    status: int
    words: str = ""
    retry_after: str | None = None
    """The header, as it came."""
    is_final: bool = False
    """Trying again would not help, though nothing came back."""


def verdict(answer: Answer) -> RetryVerdict:
    """What the answer means for the bundle."""
    if 200 <= answer.status < 300:
        return RetryVerdict.TAKEN
    if answer.is_final or answer.status in _NEVER:
        return RetryVerdict.REFUSED
    if answer.status == 0 or answer.status in _AGAIN or answer.status >= 500:
        return RetryVerdict.AGAIN
    return RetryVerdict.REFUSED


def words_of(answer: Answer) -> str:
    """The answer for people."""
    if answer.status == 0:
        return answer.words
    if 300 <= answer.status < 400:
        return f"it answers {answer.status}: what is meant is at another address; give that one"
    known = _WORDS.get(answer.status)
    return f"it answers {answer.status}" + (f": {known}" if known else "")


def wait_s(attempt: int, answer: Answer, *, now_s: float, chance: Callable[[], float]) -> float:
    """How long to wait after this attempt (from 0 on): twice as long each time, by chance up to half less, so
    that many who failed together do not come back together; and no less than the receiver asks for."""
    longest = min(LONGEST_S, FIRST_S * 2.0 ** min(attempt, 20))
    own = longest * (1 - chance() / 2)
    return max(own, retry_after_s(answer.retry_after, now_s))


def retry_after_s(header: str | None, now_s: float) -> float:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3): a number of them, or a date; 0: it is neither."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.fromtimestamp(now_s, UTC)).total_seconds())
