"""What notifications say, and who gets them."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.building.issues import FINDING, IDLE_LAG, INPUT_LAG, ISSUES, JANK, MORE_ISSUES, STARTUP
from tests.building.stalls import HOSTILE, KILLED, SESSION, STALL, hostile_stall, stall

from loopcanary.model import Cause, Issue, IssueKind, Severity, StallState
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.notifications.desk import News, group_of
from loopcanary.notifications.notice import Notice, after_losses, notice_of, over_of, rest_of
from loopcanary.notifications.rate_limit import Permit, Withheld
from loopcanary.notifications.webhook import VARIABLE, AddressError, body_of, parse_address, read_address
from loopcanary.registry import KINDS, REGISTRY

S = 1_000_000_000
HANG = stall(severity=Severity.HANG, duration_ns=1_400_000_000)
ANR = replace(HANG, severity=Severity.ANR, duration_ns=6 * S)


def told(found: Issue, withheld: Withheld | None = None, *, is_counted: bool = False) -> Notice:
    permit = Permit(item=found, withheld=withheld or Withheld(), is_counted=is_counted)
    return notice_of(permit, SESSION, 100 * S)


def test_a_notice_says_how_long_where_why_what_to_do_and_who():
    notice = told(replace(HANG, scene="checkout", thread="loop-1"))
    assert notice.title == "hang of 1.40 s: json.loads(body) in load_orders (orders.py:87)"
    assert notice.lines == (
        "native-cpu (certain): a C call was computing",
        "try: Run it in a thread: `await asyncio.to_thread(json.loads, body)`",
        "shop (pid 41) on here, scene checkout, thread loop-1",
    )
    assert not notice.is_urgent
    assert notice.stalls == 1


def test_what_was_withheld_has_its_time():
    withheld = Withheld(count=12, total_ns=4_100_000_000, max_ns=S, since_ns=40 * S)
    fresh = told(HANG, withheld)
    assert fresh.more == "12 more of this bug in the last 60.0 s, 4.10 s in all, longest 1.00 s"
    assert fresh.stalls == 13
    late = told(HANG, withheld, is_counted=True)
    assert late.more == "12 of this bug in the last 60.0 s, 4.10 s in all, longest 1.00 s"
    assert late.stalls == 12
    assert told(HANG, replace(withheld, count=1), is_counted=True).more == ""
    rest = rest_of(withheld, "loopcanary report --store /srv/shop")
    assert rest.title == "12 more stalls until the end, 4.10 s in all"
    assert rest.more == "longest 1.00 s; `loopcanary report --store /srv/shop` shows them all"


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        (replace(ANR, state=StallState.ONGOING), "not responding (ANR) for 6.00 s and still in progress: "),
        (replace(ANR, state=StallState.KILLED), "killed while stalled for 6.00 s: "),
    ],
)
def test_what_is_urgent_says_so(found, begins):
    notice = told(found)
    assert notice.title.startswith(begins)
    assert notice.is_urgent


def test_a_stall_notified_in_progress_is_over_in_the_end():
    assert over_of(ANR, SESSION).title.startswith("ended after 6.00 s: ")
    assert over_of(ANR, SESSION).stalls == 0


def test_a_notice_after_others_were_lost_says_how_many():
    assert after_losses(Notice(title="t"), 0) == Notice(title="t")
    assert after_losses(Notice(title="t", more="m"), 2).more == (
        "m; 2 notifications before this could not be delivered"
    )


def test_a_notice_says_what_is_known():
    bare = replace(HANG, cause=Cause.UNKNOWN, advice=None)
    permit = Permit(item=bare, withheld=Withheld(), is_counted=False)
    assert notice_of(permit, None, 0).lines == ("unknown: not enough evidence", "pid 41")


def test_nothing_of_the_programs_values_is_in_a_notice():
    assert STALL.culprit is not None
    body = body_of(told(STALL)).decode()
    assert STALL.culprit.source not in body
    assert STALL.culprit.file not in body


@pytest.mark.parametrize(
    ("found", "title", "cause"),
    [
        (JANK, "jank: 47 of 60 fps in boss, worst frame 400 ms", None),
        (
            INPUT_LAG,
            "late input: KeyDown was handled after 266 ms",
            "of 266 ms the event waited 16.0 ms (6.0 %) for the loop",
        ),
        (
            IDLE_LAG,
            "idle work thumbs took 4.00 s",
            "one call took 4.00 s; the limit is 2.00 s",
        ),
    ],
    ids=lambda found: getattr(found, "id", ""),
)
def test_other_issues_say_what_they_are_by_how_much_and_where(found, title, cause):
    notice = told(found)
    assert notice.title == title
    assert notice.cause.startswith(cause or "")
    assert not notice.is_urgent
    if found.culprit is not None:
        file = found.culprit.file.rpartition("/")[2]
        assert f"in {found.culprit.qualname} ({file}:{found.culprit.line})" in notice.cause
        assert found.culprit.file not in body_of(notice).decode()
    assert notice.place.startswith("shop (pid")
    withheld = Withheld(count=3, total_ns=2 * S, max_ns=S, since_ns=40 * S)
    assert told(found, withheld).more.startswith("3 more of this bug in the last 60.0 s")
    assert (
        rest_of(withheld, "loopcanary report", "issue").title == "3 more issues until the end, 2.00 s in all"
    )


def test_every_kind_of_issue_has_a_notice():
    """Kinds that join the model join here: their samples are among these."""
    registered = {one.name for one in REGISTRY.of(KINDS)}
    issues = (*ISSUES, *MORE_ISSUES, FINDING)
    assert {issue.kind.value for issue in issues} == registered - {"stall"}
    for issue in issues:
        notice = told(issue)
        assert issue.title in notice.title
        assert notice.cause
        body_of(notice)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_in_other_issues_are_made_safe(text):
    assert JANK.culprit is not None
    culprit = replace(JANK.culprit, qualname=text, file=text)
    for line in told(replace(JANK, title=text, scene=text, culprit=culprit)).lines:
        assert line.isprintable()
        assert len(line) <= 600


# ---- news -------------------------------------------------------------------------------------


def test_a_stall_is_news_once_at_each_stage():
    news = News(from_ns=S)
    ongoing = replace(HANG, state=StallState.ONGOING)
    stages = [
        ongoing,
        replace(ongoing, duration_ns=3 * S),
        replace(ANR, state=StallState.ONGOING),
        replace(ANR, duration_ns=8 * S, state=StallState.ONGOING),
        ANR,
        replace(ANR, state=StallState.KILLED),
        replace(ANR, state=StallState.KILLED),
    ]
    heard = []
    for found in stages:
        heard.append(news.is_news(found))
        if heard[-1]:
            news.take(found)
    assert heard == [True, False, True, False, False, True, False]
    assert len({group_of(found) for found in stages}) == 3


@pytest.mark.parametrize(
    ("from_ns", "found", "expected"),
    [
        (S, stall(duration_ns=S - 1), False),
        (S, stall(duration_ns=S), True),
        (0, stall(duration_ns=1), True),
        # Shorter than a hang it is over in a moment, and known in full then.
        (0, stall(duration_ns=S - 1, state=StallState.ONGOING), False),
        (5 * S, stall(duration_ns=S, state=StallState.KILLED), True),
        ((1 << 63) - 1, ANR, False),
        ((1 << 63) - 1, KILLED, True),
    ],
)
def test_the_least_that_is_news(from_ns, found, expected):
    assert News(from_ns).is_news(found) is expected


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.kind.value)
def test_an_issue_of_a_wanted_kind_is_news_once(issue):
    felt = issue.felt_ns
    assert not News(felt + 1).is_news(issue)
    assert not News(0, {IssueKind.STALL}).is_news(issue)
    assert not News((1 << 63) - 1).is_news(issue)  # `killed`
    news = News(felt, {issue.kind})
    assert not news.is_news(HANG)
    assert news.is_news(issue)
    news.take(issue)
    assert not news.is_news(issue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knot(IssueFacts):
    """A kind of which one can go on, or end with its process."""

    kind = IssueKind("knot")

    how: StallState

    @property
    def state(self):
        return self.how


def test_any_kind_may_go_on_and_end_with_its_process():
    shared = {one.name: getattr(JANK, one.name) for one in fields(IssueFacts)}
    ongoing = Knot(**shared | {"id": "s1-knot-1", "duration_ns": 2 * S, "stalls": ()}, how=StallState.ONGOING)
    killed = replace(ongoing, how=StallState.KILLED)
    news = News(from_ns=0)
    assert not news.is_news(replace(ongoing, duration_ns=S - 1))
    assert news.is_news(ongoing)
    news.take(ongoing)
    assert not news.is_news(replace(ongoing, duration_ns=3 * S))
    assert news.is_news(killed)
    assert told(killed).is_urgent
    assert not told(ongoing).is_urgent


def test_a_start_is_notified_with_its_longest_phase():
    assert told(STARTUP).cause == (
        "12.0 s; the limit is 10.0 s; import pandas has the largest own time: 6.00 s (50 %); "
        "import: importing modules"
    )


def test_a_start_within_its_limit_is_no_news():
    assert News(0).is_news(STARTUP)
    assert not News(0).is_news(replace(STARTUP, threshold_ns=STARTUP.duration_ns))


def test_what_is_felt_of_jank_is_its_longest_frame():
    assert JANK.felt_ns == JANK.figures.worst_ns < JANK.duration_ns


def test_an_issue_made_of_a_notified_stall_is_no_news():
    news = News(0)
    assert JANK.stalls
    assert news.is_news(JANK)
    news.take(replace(HANG, id=JANK.stalls[0]))
    assert not news.is_news(JANK)


def test_what_is_remembered_of_notified_stalls_is_bounded():
    news = News(0)
    for number in range(10_500):
        news.take(replace(HANG, id=str(number)))
    assert len(news._taken) == 10_000
    assert not news.is_news(replace(HANG, id="10499"))


# ---- Slack ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_name_mentions_links_or_formats(text):
    message = json.loads(body_of(told(replace(hostile_stall(text), scene=text))))
    shown = [message["text"], *(block["text"]["text"] for block in message["blocks"][1:])]
    for one in shown:
        assert "<" not in one
        assert ">" not in one
        assert "@everyone" not in one
        for line in one.split("\n"):
            assert line.startswith("`")
            assert line.count("`") == 2
    assert len(message["blocks"][0]["text"]["text"]) <= 150
    assert message["blocks"][0]["text"]["type"] == "plain_text"


def test_the_message_is_slacks():
    message = json.loads(body_of(told(replace(HANG, title="a < b & c"))))
    assert [block["type"] for block in message["blocks"]] == ["header", "section"]
    assert message["text"].startswith("`hang of 1.40 s: a &lt; b &amp; c`\n`native-cpu (certain): a C call")
    header = {"type": "plain_text", "text": "hang of 1.40 s: a < b & c", "emoji": False}
    assert message["blocks"][0]["text"] == header
    assert message["blocks"][1]["text"]["type"] == "mrkdwn"


# ---- the address ------------------------------------------------------------------------------

SECRET = "T0/B0/very-secret"


def test_the_environments_address_comes_first(tmp_path):
    file = tmp_path / "hook"
    file.write_text(f" https://hooks.example/{SECRET}?x=1\n")
    address, where = read_address({}, file)
    assert (address.host, address.port, address.target) == ("hooks.example", 443, f"/{SECRET}?x=1")
    assert "webhook_file" in where
    other, where = read_address({VARIABLE: "http://localhost:8080"}, file)
    assert (other.is_encrypted, other.port, other.target, where) == (False, 8080, "/", VARIABLE)
    assert SECRET not in repr(address)
    assert "hooks.example" not in repr(address)


@pytest.mark.parametrize(
    "text",
    [
        f"http://hooks.example/{SECRET}",
        f"ftp://hooks.example/{SECRET}",
        f"https:///{SECRET}",
        f"https://user:{SECRET}@hooks.example/",
        f"https://hooks.example:99999/{SECRET}",
        f"https://hooks.example:0/{SECRET}",
        f"https://hooks.example/{SECRET}\nX-Header: 1",
        f"https://hooks.example/ {SECRET}",
        f"https://[::1/{SECRET}",
        f"https://hooks.ex\u00e4mple/{SECRET}",
        f"{SECRET}",
        f"http://127.0.0.1.hooks.example/{SECRET}",
        f"https://hooks.example/{SECRET}" + "x" * 5_000,
    ],
)
def test_a_bad_address_is_refused_and_not_repeated(text):
    with pytest.raises(AddressError) as refused:
        parse_address(text, VARIABLE)
    assert SECRET not in str(refused.value)
    assert "example" not in str(refused.value)
    assert VARIABLE in str(refused.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]", "app.localhost"])
def test_this_machine_needs_no_encryption(host):
    assert not parse_address(f"http://{host}:1/x", VARIABLE).is_encrypted


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text):
    try:
        address = parse_address(text, VARIABLE)
    except AddressError:
        return
    assert address.target.startswith("/")
    assert address.target.isprintable()
    assert " " not in address.target


def test_no_address_and_no_file_say_where_to_put_it(tmp_path):
    with pytest.raises(AddressError, match=VARIABLE):
        read_address({}, None)
    with pytest.raises(AddressError, match="cannot be read: No such file"):
        read_address({}, tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(AddressError, match="it is not text"):
        read_address({}, tmp_path / "binary")
