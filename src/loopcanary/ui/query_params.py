"""Reads the parameters of addresses. None of them is trusted; the page names wrong ones and ignores them."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import QueryParams

from loopcanary.model import Cause, IssueKind
from loopcanary.model.search import IssueQuery
from loopcanary.model.units import parse_duration_ns
from loopcanary.registry import KINDS, REGISTRY
from loopcanary.ui.pages.groups import OTHER, Filters
from loopcanary.ui.pages.stalls import ChartPart
from loopcanary.words.text import printable

_WORDS_MAX = 8
_PAGE_MAX = 100_000
_MOMENT_DIGITS = 21
NO_SCENE = "-"
"""Stands for stalls without a scene."""


def filters_of(asked: QueryParams, now_wall_ns: int) -> Filters:
    wrong: list[str] = []
    text = asked.get("text", "").strip()
    scene = asked.get("scene", "")
    kind = _kind(asked.get("kind", ""), wrong)
    return Filters(
        kind=kind,
        query=IssueQuery(
            kind=IssueKind(kind) if kind not in ("", OTHER) else None if kind else IssueKind.STALL,
            other_than=IssueKind.STALL if kind == OTHER else None,
            since_wall_ns=_since(asked.get("since", ""), now_wall_ns, wrong),
            causes=_causes(asked.getlist("cause"), wrong),
            words=tuple(text.split()[:_WORDS_MAX]),
            session=asked.get("session", "") or None,
            program=asked.get("program", "") or None,
            scene=None if not scene else "" if scene == NO_SCENE else scene,
            in_app={"own": True, "library": False}.get(asked.get("code", "")),
        ),
        since=asked.get("since", ""),
        text=text,
        with_ignored=asked.get("ignored", "") == "1",
        page=_page(asked.get("page", "")),
        wrong=tuple(wrong),
    )


def page_of(asked: QueryParams) -> int:
    return _page(asked.get("page", ""))


def part_of(asked: QueryParams) -> ChartPart:
    fingerprint = asked.get("f", "") or None
    return ChartPart(
        query=IssueQuery(
            # A bug is of one kind.
            kind=None if fingerprint else IssueKind.STALL,
            fingerprint=fingerprint,
            session=asked.get("session", "") or None,
        ),
        from_ns=_moment(asked.get("from", "")),
        to_ns=_moment(asked.get("to", "")),
        reaching=asked.get("reaching", "") == "1",
        least_ns=_moment(asked.get("least", "")) or 0,
        below_ns=_moment(asked.get("below", "")),
    )


def before_of(asked: QueryParams) -> int | None:
    """The moment that a list's page ends before, in ns since 1970; None: the latest page."""
    return _moment(asked.get("before", ""))


def _moment(given: str) -> int | None:
    digits = given.removeprefix("-")
    return int(given) if digits.isascii() and digits.isdigit() and len(digits) < _MOMENT_DIGITS else None


def _kind(given: str, wrong: list[str]) -> str:
    if given in ("", OTHER) or REGISTRY.find(KINDS, given) is not None:
        return "" if given == IssueKind.STALL.value else given
    wrong.append(f"{printable(given, 60)} is not a kind of issue")
    return ""


def _since(given: str, now_wall_ns: int, wrong: list[str]) -> int | None:
    if not given:
        return None
    try:
        return now_wall_ns - parse_duration_ns(given)
    except ValueError as error:
        wrong.append(printable(str(error), 200))
        return None


def _causes(given: Sequence[str], wrong: list[str]) -> frozenset[Cause]:
    names = [name for name in given if name]
    known = {cause.value: cause for cause in Cause}
    wrong += [f"{printable(name, 60)} is not a cause" for name in names if name not in known]
    return frozenset(known[name] for name in names if name in known)


def _page(given: str) -> int:
    return min(max(int(given), 1), _PAGE_MAX) if given.isascii() and given.isdigit() and len(given) < 9 else 1
