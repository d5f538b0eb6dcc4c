"""Locks that threads acquire in opposite orders: the issue, and what reports say of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from tests.store.samples import LOCK_ORDER, SESSION, S, frame

from loopcanary.assembly.tracing.orders import fitted
from loopcanary.bundles import Redactor
from loopcanary.document import markdown
from loopcanary.model import Cause, Issue
from loopcanary.model.issues.lock_orders import LockOrder, TakenOrder
from loopcanary.notifications.notice import notice_of, rest_of
from loopcanary.notifications.rate_limit import Permit, Withheld
from loopcanary.registry import said_of
from loopcanary.report import as_json
from loopcanary.report.documents import document_of
from loopcanary.report.model import of_bug, of_issue
from loopcanary.store import Store
from loopcanary.tracers.orders.fitting import identity
from loopcanary.tracers.reported import completed
from loopcanary.wire import issue_from_wire, to_wire
from loopcanary.words.lags import evidence_of

NOTHING_LASTED = re.compile(r"\b0(\.0+)? (ns|us|ms|s)\b")
TELLER, AUDITOR = LOCK_ORDER.orders


def order(**changes: Any) -> LockOrder:
    return replace(LOCK_ORDER, **changes)


def circle(*names: str) -> tuple[TakenOrder, ...]:
    pairs = zip(names, (*names[1:], names[0]), strict=True)
    return tuple(TakenOrder(thread=f"t{name}", holds=name, takes=after) for name, after in pairs)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store")
    made.put([SESSION], [])
    for number in range(3):
        made.put_issue(
            order(id=f"s1-lock-order-{number}", began_wall_ns=SESSION.started_wall_ns + number * S)
        )
    yield made
    made.close()


def test_the_title_names_the_locks():
    assert said_of(LOCK_ORDER, "title") == LOCK_ORDER.title
    three = order(orders=circle("a", "b", "c"))
    assert said_of(three, "title") == "3 locks are acquired in a circle: a, b, c"
    five = order(orders=circle(*"abcde"))
    assert said_of(five, "title") == "5 locks are acquired in a circle: a, b, c, d, ..."


def test_each_order_is_a_sentence():
    held = "while it held"
    teller, auditor, none = evidence_of(LOCK_ORDER)
    acquired = "teller acquired Lock 'Bank.ledger' in Bank.pay (bank.py:13)"
    assert teller == f"{acquired} {held} Lock 'Bank.accounts' (acquired at bank.py:12)"
    acquired = "auditor acquired Lock 'Bank.accounts' in Bank.audit (bank.py:18)"
    assert auditor == f"{acquired} {held} Lock 'Bank.ledger' (acquired at bank.py:17)"
    waits = "each thread waits for the other one when both are between the two at the same time"
    assert none == f"No deadlock was seen: {waits}"
    first, *_, last = evidence_of(order(orders=circle("a", "b", "c")))
    assert first == "ta acquired b while it held a"
    assert last.startswith("No deadlock was seen: each thread waits for the next one when each is between")


def test_the_line_to_change_is_the_programs_own():
    library = frame("Lock.__enter__", "/usr/lib/python3.11/x.py", 5)
    orders = (replace(TELLER, frames=(library, *TELLER.frames)), AUDITOR)
    found = fitted(order(orders=orders, culprit=None, advice=None, cause=Cause.UNKNOWN), SESSION)
    assert found.culprit is not None
    assert (found.culprit.qualname, found.culprit.line) == ("Bank.pay", 13)
    assert (found.cause, found.advice) == (Cause.LOCK, LOCK_ORDER.advice)


def test_the_same_places_are_the_same_bug():
    assert identity(LOCK_ORDER) == identity(order(orders=(AUDITOR, TELLER)))
    assert identity(LOCK_ORDER) == (
        *("function=Bank.audit", "file=shop/bank.py"),
        *("function=Bank.pay", "file=shop/bank.py"),
    )
    assert identity(order(orders=circle("a", "b"))) == ("locks=2",)


def test_what_the_tracer_leaves_out_is_filled_in():
    class Told:
        issue = LockOrder(began_wall_ns=SESSION.started_wall_ns, duration_ns=0, orders=LOCK_ORDER.orders)
        thread = "teller"
        scene = None

    found = completed(Told(), SESSION, 3, [])  # type: ignore[arg-type]
    assert isinstance(found, LockOrder)
    assert (found.title, found.thread, found.loop) == (LOCK_ORDER.title, "teller", "thread")
    assert found.fingerprint.startswith("lock-order:")
    assert issue_from_wire(json.loads(json.dumps(to_wire(found)))) == found


@pytest.mark.parametrize("in_detail", [False, True], ids=["short", "in detail"])
def test_reports_show_no_length(store, in_detail):
    now = SESSION.started_wall_ns + 60 * S
    issue = store.reader.issue("s1-lock-order-2")
    reports = (
        of_issue(store.reader, issue, now_wall_ns=now, explain=lambda *_: ()),
        of_bug(store.reader, issue.fingerprint, limit=20, now_wall_ns=now, explain=lambda *_: ()),
    )
    for report in reports:
        text = markdown.render(document_of(report, in_detail=in_detail), "/srv/shop")
        assert not NOTHING_LASTED.search(text)
        assert "waiting for a lock" not in text
        assert "### Thread teller acquires Lock 'Bank.ledger' here" in text
        assert "### Thread auditor holds Lock 'Bank.ledger', acquired here" in text
    assert json.loads(as_json.render(reports[0]))["issues"][0]["duration_ms"] == 0


def test_a_notification_says_who_acquired_what():
    more = Withheld(count=2, since_ns=0)
    permit: Permit[Issue] = Permit(item=LOCK_ORDER, withheld=more, is_counted=False)
    notice = notice_of(permit, SESSION, 60 * S)
    assert notice.title == f"lock order: {LOCK_ORDER.title}"
    assert notice.cause.startswith(
        "teller acquired Lock 'Bank.ledger' in Bank.pay (bank.py:13) while it held"
    )
    assert notice.more == "2 more of this bug in the last 60.0 s"
    rest = rest_of(more, "loopcanary report", "issue")
    assert (rest.title, rest.more) == ("2 more issues until the end", "`loopcanary report` has them all")


def test_names_of_locks_and_threads_are_redacted():
    found = repr(Redactor(["names"], b"0123456789abcdef").issue(LOCK_ORDER))
    assert not re.search("Bank|teller|auditor|ledger", found.replace("/srv/shop/bank.py", ""))
