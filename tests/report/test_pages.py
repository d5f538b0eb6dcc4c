"""What the pages of text say, beside what the golden files hold."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.building.stalls import BEGAN, CULPRIT, KILLED, MS, SESSION, STALL, S, session, stall
from tests.report.test_report import ALL, NOW, as_markdown, as_shown, bug_of, group_of, report_of

from loopcanary.assembly.explanations import delays
from loopcanary.document.times import age
from loopcanary.model import (
    Blocker,
    Cause,
    Contributor,
    Holder,
    LockProof,
    Portion,
    Scheduler,
    SessionEnd,
    Severity,
    StallScope,
    StallState,
    Surroundings,
    Target,
    TargetKind,
)
from loopcanary.report import as_json
from loopcanary.report.figures.affected import affected
from loopcanary.report.figures.gains import gain_words
from loopcanary.report.figures.trend import course, sums_over_time
from loopcanary.report.model import build
from loopcanary.store import Store
from loopcanary.words.waiting import share_words, thread_by_name

HOLDER = Holder(thread="pool-1", culprit=CULPRIT, share=0.7, lock="RLock", proof=LockProof.OWNER)
MIXED = stall(
    cause=Cause.LOCK,
    second_cause=Cause.DISK_IO,
    second_share=0.3,
    waited_on=Target(kind=TargetKind.SOCKET, name="10.0.0.5:5432"),
    holder=HOLDER,
    holders=(HOLDER, replace(HOLDER, thread="pool-2", share=0.3, proof=LockProof.NONE)),
    portions=(
        Portion(share=0.7, cause=Cause.LOCK, culprit=CULPRIT, blocker=None),
        Portion(
            share=0.3,
            cause=Cause.DISK_IO,
            culprit=replace(CULPRIT, function="save"),
            blocker=Blocker(call="os.fsync(fd)", function=None),
        ),
    ),
    contributors=(
        Contributor(
            name="Feed.poll",
            count=900,
            total_ns=200 * MS,
            longest_ns=2 * MS,
            scheduled=(
                Scheduler(file="/srv/app/feed.py", line=31, count=880),
                Scheduler(file="/srv/app/web.py", line=7, count=20),
            ),
        ),
        Contributor(name="tick", count=100, total_ns=40 * MS, longest_ns=MS),
    ),
    ledger=replace(STALL.ledger, error_ns=3 * MS),
    surroundings=Surroundings(
        window_ns=400 * MS, system_cpu=0.93, process_cpu=1.02, throttled_ns=0, memory_available_bytes=3 << 30
    ),
    startup=True,
)


BLAMELESS = replace(
    STALL,
    portions=(
        Portion(share=0.6, cause=Cause.NATIVE_CPU, culprit=CULPRIT, blocker=None),
        Portion(share=0.3, cause=Cause.GC, culprit=None, blocker=None),
        Portion(share=0.1, cause=Cause.LOCK, culprit=None, blocker=None),
    ),
)


@pytest.mark.parametrize("cause", [Cause.GC, Cause.HOST, Cause.GIL])
def test_a_part_without_culprit_is_not_unreadable(store, cause):
    struck = replace(BLAMELESS.portions[1], cause=cause)
    store.put([SESSION], [replace(BLAMELESS, portions=(struck, BLAMELESS.portions[2]))])
    shown = as_shown(group_of(store), width=100)
    assert re.search(rf" 30 %  {cause.value} *no line of this thread is at fault\n", shown)
    assert re.search(r" 10 %  lock *no frame could be read\n", shown)


def test_a_thread_that_is_joined_is_waited_for(store: Store) -> None:
    joined = Holder(thread="audit", culprit=CULPRIT, lock="thread", proof=LockProof.OWNER)
    store.put([SESSION], [replace(STALL, cause=Cause.LOCK, holder=joined, holders=(joined,))])
    shown = as_shown(group_of(store), width=100)
    assert "waited for thread audit" in shown
    assert "ran at /srv/shop" in shown
    assert "held by" not in shown


@pytest.mark.parametrize(
    "said",
    [
        "lock (certain): waiting for a lock; 30 % disk-io",
        "waited on socket to 10.0.0.5:5432",
        "held by  thread pool-1 for 70 %, holding the RLock (the lock itself says so)",
        "held by  thread pool-2 for 30 %, holding the RLock (not certain)",
        " 30 %  disk-io  /srv/shop/orders.py:87 in save                       os.fsync(fd)",
        "200 ms    900  222 us  2.00 ms  Feed.poll",
        "scheduled at /srv/app/feed.py:31 (880), /srv/app/web.py:7 (20)",
        "± 3.00 ms",
        "around   machine 93 % busy, this process used 1.02 cores, 3.00 GiB of memory free",
        "startup  before the loop first waited",
        "fair evidence",
        "startup  1 of 1 before the loop first waited",
        "grouped  by scope callback, culprit.file orders.py, culprit.function f",
    ],
)
def test_a_bug_s_page_has_all_the_evidence(store: Store, said: str) -> None:
    store.put([SESSION], [MIXED])
    assert said in as_shown(group_of(store), width=120)


@pytest.mark.parametrize(
    "said",
    [
        "; 30 % disk-io",
        "- **Waited on**: socket to 10.0.0.5:5432",
        "- **Held by**: thread pool-2 for 30 %, holding the RLock (not certain)",
        "| **30 %** | disk-io | `orders.py:87` in `save` | `os.fsync(fd)` |",
        "- 200 ms: scheduled at `/srv/app/feed.py:31` (880), `/srv/app/web.py:7` (20)",
        "- **Grouped**: by scope `callback`, culprit.file `orders.py`, culprit.function `f`",
        "- **Trend**: not enough stalls for a trend",
    ],
)
def test_markdown_has_the_evidence_too(store: Store, said: str) -> None:
    store.put([SESSION], [MIXED])
    assert said in as_markdown(group_of(store))


def test_stalls_left_out_are_counted_with_the_reason(store: Store) -> None:
    counts = {
        "stalls_suppressed_debugger": 3,
        "stalls_suppressed_expected": 1_200,
        "stalls_suppressed_storm": 0,
    }
    more = {"stalls_at_startup": 1, "watchdog_late": 2, "suspends": 1, "clock_steps": 2, "samples_taken": 70}
    lost = {"calls_refused": 2, "calls_no_descriptor": 1, "failures_store": 5}
    store.put([replace(SESSION, statistics=counts | more | lost)], [STALL])
    report = report_of(store)
    text = " ".join(as_shown(report, width=160).split())
    told = (
        "not reported: 3 while a debugger was attached, "
        "1,200 within their own time limit (`expect`, `watch`, `job_threshold`); "
        "1 stall before the loop first waited; the watchdog was late 2 times; "
        "the machine was suspended 1 time; the clock of the CPU stepped 2 times; "
        "what 2 threads waited in could not be read: the process was not dumpable "
        "(it had changed its user), or a sandbox refused; "
        "what 1 thread waited in could not be read: no descriptor was free (ulimit -n); "
        "the store failed 5 times: stalls may be missing"
    )
    assert told in text
    assert told.replace("`", "\\`").replace("_", "\\_") in as_markdown(report)


def test_a_brief_loop_says_how_long_it_lived(store: Store) -> None:
    main = SESSION.loops[0]
    brief = replace(main, thread="Thread-2", turns=36, callbacks=35, window_ns=4_200_000)
    half = replace(main, thread="Thread-3", window_ns=30 * S)
    store.put([replace(SESSION, loops=(main, brief, half))], [STALL])
    text = " ".join(as_shown(report_of(store), width=160).split())
    assert "lived 4.20 ms; stalled 0 % of the time; 35 callbacks in 36 turns" in text
    assert "lived 30.0 s; stalled 0 % of the time; 0.667 callbacks/s in 0.333 turns/s" in text
    assert text.count("lived") == 2


def test_processes_at_the_same_time_are_watched_once(store: Store) -> None:
    begin = SESSION.started_wall_ns
    spans = ((0, 9), (1, 9), (20, 22))
    store.put(
        [
            session(id=f"s{k}", started_wall_ns=begin + low * S, ended_wall_ns=begin + high * S, loops=())
            for k, (low, high) in enumerate(spans, 1)
        ],
        [STALL],
    )
    text = as_shown(report_of(store), width=160)
    assert "in all; watched for 11.0 s (19.0 s in 3 processes)\n" in text


def test_a_line_hit_by_the_host_is_not_blamed(store: Store) -> None:
    struck = replace(STALL, cause=Cause.HOST, title="the host did not run the ready thread")
    store.put([SESSION], [struck])
    assert STALL.culprit is not None
    assert STALL.culprit.source is not None
    text = as_shown(group_of(store), width=120)
    markdown = as_markdown(group_of(store))
    assert f":{STALL.culprit.line} in {STALL.culprit.qualname}" in text
    assert "it was on this line when it lost the CPU" in text
    assert "it was on this line when it lost the CPU" in markdown
    assert all(STALL.culprit.source not in page and "^" not in page for page in (text, markdown))


def test_the_report_says_what_fixing_a_group_buys(store: Store) -> None:
    loop = replace(
        SESSION.loops[0],
        delay_mean_ns=((7_310 * MS) ** 2 + 100 * MS**2) // (2 * 77 * S),
        queue_mean_ns=MS,
        histogram=((MS, 100), (7_310 * MS, 1)),
    )
    ended = replace(KILLED, thread="MainThread", state=StallState.ENDED)
    store.put([session(loops=(loop,))], [ended])
    report = build(store.reader, ALL, limit=9, now_wall_ns=NOW, delays=delays)
    said = "p99 loop delay 6.54 s -> under 1 ms, at least 18.3 ms less waiting for other callbacks"
    assert said in " ".join(as_shown(report).split())
    assert said.replace("->", "-&gt;") in as_markdown(report)
    [group] = as_json.report_to_dict(report)["groups"]
    [gain] = group["gains"]
    assert gain["program"] == "shop"
    assert (gain["p99_ms"], gain["p99_without_ms"]) == (pytest.approx(6_540, rel=0.01), 0)
    assert group["others_waited_s"] == pytest.approx(0.01828, rel=0.01)


@pytest.mark.parametrize(
    "changed", [{"state": StallState.KILLED}, {"cause": Cause.HOST}, {"state": StallState.CRASHED}], ids=repr
)
def test_nothing_is_promised_where_it_is_not_known(store: Store, changed: dict[str, Any]) -> None:
    ended = replace(KILLED, **{"thread": "MainThread", "state": StallState.ENDED, **changed})
    store.put([SESSION], [ended])
    report = build(store.reader, ALL, limit=9, now_wall_ns=NOW, delays=delays)
    assert [words for entry in report.figures.values() for words in gain_words(entry.gains)] == []


def test_only_the_first_groups_are_shown_in_full(store: Store) -> None:
    groups = [stall(id=f"g{k}", fingerprint=f"1:{k}", duration_ns=(9 - k) * 100 * MS) for k in range(6)]
    store.put([SESSION], groups)
    text = as_shown(report_of(store))
    assert text.count("json.loads(body)]") == 3
    assert text.count("/srv/shop/orders.py:87 in ") == 6
    wide = as_shown(report_of(store), width=120)
    assert any("1:5" in line and line.endswith("orders.py:87 in load_orders") for line in wide.splitlines())


@pytest.mark.parametrize("width", [80, 100, 120])
def test_only_paths_are_wider_than_the_screen(store: Store, width: int) -> None:
    store.put([SESSION], [MIXED, stall(id="x", began_wall_ns=BEGAN + 9 * S)])
    for report in (group_of(store), report_of(store)):
        long = [line for line in as_shown(report, width=width).splitlines() if len(line) > width]
        assert all("/" in line for line in long), long


def test_the_work_that_a_bug_strikes_is_counted() -> None:
    found = affected(
        [
            stall(scene="checkout", task="Task-1", startup=True),
            stall(scene="checkout", task="Task-22", thread="io"),
            stall(scene=None, task="poll-3", callback=None),
        ]
    )
    assert found.scenes == (("checkout", 2),)
    assert (found.tasks, found.named_tasks) == ((("Task-#", 2), ("poll-#", 1)), (("poll-#", 1),))
    assert found.callbacks == (("handle", 2),)
    assert found.threads == (("MainThread (asyncio)", 2), ("io (asyncio)", 1))
    assert (found.startup, found.examined) == (1, 3)


def test_names_of_some_stalls_have_their_number(store: Store) -> None:
    scenes = [None, "cart", "checkout", "checkout"]
    store.put([SESSION], [stall(id=f"s1-{k}", scene=scene) for k, scene in enumerate(scenes)])
    text = as_shown(bug_of(store, STALL.fingerprint, ()))
    assert "scenes   checkout (2 of 4), cart (1 of 4)" in text
    assert "callback handle\n" in text
    assert "grouped" not in text


def test_the_latest_say_what_was_more_than_a_stall(store: Store) -> None:
    lengths = {Severity.STALL: 412 * MS, Severity.HANG: 2 * S, Severity.ANR: 7 * S}
    for grave, length_ns in lengths.items():
        store.put([SESSION], [stall(id=f"s1-{grave.value}", severity=grave, duration_ns=length_ns)])
    text = as_shown(bug_of(store, STALL.fingerprint, ()))
    for ending in ("412 ms  s1-stall\n", "2.00 s  s1-hang   hang\n", "7.00 s  s1-anr    not responding\n"):
        assert ending in text


# ---- over time -----------------------------------------------------------------------------------


def test_a_stall_counts_in_its_part_of_the_time() -> None:
    assert sums_over_time([(0, 1), (4, 2), (5, 4), (10, 8)], 2) == [3, 12]
    assert sums_over_time([(7, 1), (7, 2)], 3) == [3, 0, 0]


def test_a_course_has_its_most_as_one() -> None:
    assert course([(0, 1_000), (5, 1), (10, 500)], 3) == (1.0, 0.001, 0.5)
    assert course([(0, 0), (9, 0)], 2) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "now"), (9, "now"), (10, "10 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 d")],
)
def test_ages(seconds: int, words: str) -> None:
    assert age(0, seconds * S) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0, "0 %"), (0.0001, "under 0.1 %"), (0.004, "0.4 %"), (0.5, "50 %"), (1, "100 %")]
)
def test_shares(share: float, words: str) -> None:
    assert share_words(share) == words


def test_a_turn_s_group_is_titled(store: Store) -> None:
    title = "1,002 callbacks in one turn, mostly in poll (feed.py:3)"
    store.put([SESSION], [stall(cause=Cause.BURST, scope=StallScope.TURN, title=title)])
    assert title in as_shown(report_of(store))


@pytest.mark.parametrize(
    ("cause", "lock", "did"),
    [
        (Cause.GIL, None, "held the GIL"),
        (Cause.LOCK, "RLock", "held the lock"),
        (Cause.LOCK, "thread", "was waited for"),
    ],
)
def test_a_group_of_waits_is_placed_where_it_was_made_to_wait(
    store: Store, cause: Cause, lock: str | None, did: str
) -> None:
    culprit = replace(CULPRIT, file="/srv/shop/hog.py", function="hog")
    holder = Holder(thread="pool-1", culprit=culprit, lock=lock)
    waiting = [
        stall(id=f"g{k}", fingerprint=f"1:{k}", duration_ns=(9 - k) * 100 * MS, cause=cause, holder=holder)
        for k in range(4)
    ]
    store.put([SESSION], waiting)
    assert f"   /srv/shop/hog.py:87 in hog {did}\n" in as_shown(report_of(store))


HOG = replace(CULPRIT, file="/srv/shop/hog.py", function="hog", qualname="hog")
STRUCK = stall(
    cause=Cause.GIL,
    title="GIL held by pool-1 in hog (hog.py:87)",
    culprit=None,
    holder=Holder(thread="pool-1", culprit=HOG, share=0.6),
    holders=(Holder(thread="pool-1", culprit=HOG, share=0.6),),
    portions=(
        Portion(share=0.6, cause=Cause.GIL, culprit=None, blocker=None),
        Portion(share=0.4, cause=Cause.HOST, culprit=None, blocker=None),
    ),
)


def test_a_wait_of_the_loop_itself_shows_the_holder_s_line(store: Store) -> None:
    store.put([SESSION], [STRUCK])
    shown = as_shown(report_of(store))
    held = shown.index("held at /srv/shop/hog.py:87 in hog")
    assert shown.index("json.loads(body)]", held) < shown.index("^~~~", held) < shown.index("gil (certain)")


def test_a_part_that_was_a_wait_has_the_holder_s_line(store: Store) -> None:
    store.put([SESSION], [STRUCK])
    parts = as_shown(group_of(store)).partition("what it consisted of")[2]
    assert re.search(r" 60 %  gil *hog.py:87 in hog held the GIL\n", parts.replace("/srv/shop/", ""))
    assert re.search(r" 40 %  host *no line of this thread is at fault\n", parts)


def test_a_library_s_line_goes_by_its_short_path(store: Store) -> None:
    folder = "/srv/app/.venv/lib/python3.12/site-packages/"
    victim = replace(CULPRIT, file=f"{folder}aiohttp/http_writer.py", line=116, in_app=False)
    store.put([SESSION], [replace(STRUCK, culprit=victim)])
    shown = as_shown(report_of(store))
    assert "waited at aiohttp/http_writer.py:116 in load_orders" in shown
    assert "site-packages" not in shown


@pytest.mark.parametrize(
    ("state", "end", "counted"),
    [
        (StallState.KILLED, SessionEnd.KILLED, 1),
        (StallState.ONGOING, SessionEnd.RUNNING, 1),
        (StallState.ENDED, SessionEnd.KILLED, 0),
        (StallState.ENDED, SessionEnd.EXIT, 0),
    ],
)
def test_a_stall_that_never_ended_counts_for_its_loop(
    store: Store, state: StallState, end: SessionEnd, counted: int
) -> None:
    loops = (SESSION.loops[0], replace(SESSION.loops[0], thread="other"))
    store.put([session(loops=loops, end=end)], [stall(state=state, duration_ns=3 * S)])
    [shown] = report_of(store).sessions
    assert [(loop.stalls, loop.stalled_ns) for loop in shown.loops] == [(counted, counted * 3 * S), (0, 0)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("pool-1", "thread pool-1"),
        ("thread 4711", "thread 4711"),
        ("7", "thread 7"),
        ("thread x", "thread thread x"),
    ],
)
def test_a_thread_without_a_name_is_not_called_thread_twice(name, shown):
    assert thread_by_name(name) == shown
