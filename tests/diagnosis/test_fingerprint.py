"""Same bug, same fingerprint; another bug, another."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.diagnosis.cases import (
    APP,
    MS,
    PATHS,
    SESSION,
    SITE,
    STDLIB,
    at,
    evidence,
    frame,
    judged,
    samples,
    stack,
)

from loopcanary.diagnosis.code.ownership import CodePaths
from loopcanary.diagnosis.fingerprint import explain
from loopcanary.model import (
    CallbackNames,
    Cause,
    Collection,
    Contributor,
    GilState,
    LockProof,
    LockView,
    Stack,
    StallScope,
)

SOURCE = """\
def handler():
    time.sleep(0.3)
    requests.get(url)
"""


def sleeping(source=SOURCE, call="time.sleep(0.3)", **more):
    return judged(
        evidence(samples(*[stack(at(call, source))] * 5, syscall="clock_nanosleep"), **more), source
    )


BASE = sleeping()


def elsewhere():
    """The same program in another folder of another machine."""
    home = "/home/u/src"
    moved = replace(at("time.sleep(0.3)", SOURCE), file=f"{home}/app.py")
    paths = CodePaths(stdlib=PATHS.stdlib, site=("/x/site-packages",), roots=(home,), working=home)
    stall = judged(evidence(samples(*[stack(moved)] * 5, syscall="clock_nanosleep")), paths=paths)
    # Its source text is at hand there too.
    return replace(stall, blocker=BASE.blocker), paths


@pytest.mark.parametrize(
    ("title", "stall"),
    [
        ("lines moved down", sleeping("\n\n# comment\n" + SOURCE)),
        ("another argument", sleeping(SOURCE.replace("0.3", "delay * 2"), "time.sleep(delay * 2)")),
        ("a longer stall", sleeping(lasted_ms=9_000)),
        ("another task", sleeping(names=CallbackNames(name="other", task="Task-99"))),
        ("another thread name", sleeping(thread_name="loop-2")),
    ],
)
def test_the_fingerprint_stays(title, stall):
    assert stall.fingerprint == BASE.fingerprint, title


def test_the_fingerprint_stays_on_another_host():
    stall, paths = elsewhere()
    assert explain(stall, paths) == explain(BASE, PATHS)


@pytest.mark.parametrize(
    ("title", "stall"),
    [
        ("another function", judged(evidence(samples(stack(frame("other", APP, 2)), syscall="futex")))),
        ("another call", sleeping(call="requests.get(url)")),
        ("another scope", sleeping(scope=StallScope.TURN)),
        (
            "a closure of the same name",
            judged(evidence(samples(stack(frame("a.<locals>.handler")), syscall="futex"))),
        ),
    ],
)
def test_the_fingerprint_differs(title, stall):
    assert stall.fingerprint != BASE.fingerprint, title


def test_it_is_versioned_and_explained():
    assert BASE.fingerprint.startswith("6:")
    assert len(BASE.fingerprint) == 14
    assert explain(BASE, PATHS) == (
        "scope=callback",
        "culprit.file=app.py",
        "culprit.function=handler",
        "blocker=sleep",
    )


def test_version_five_gives_what_it_always_gave():
    # Stores hold these: another value needs another version.
    assert BASE.fingerprint == "6:4c9503c6b1ee"


def test_a_host_without_the_source_gives_the_same():
    called = stack(
        frame("Session.send", f"{SITE}/requests/sessions.py"),
        frame("get", f"{SITE}/requests/api.py"),
        at("requests.get(url)", SOURCE),
    )
    what = evidence(samples(*[called] * 5, syscall="recvfrom"))
    assert judged(what, SOURCE).fingerprint == judged(what).fingerprint


def test_construction_goes_by_the_name_of_the_class():
    called = stack(frame("Client.__init__", f"{SITE}/lib/client.py"), frame("handler", APP, 2))
    assert "blocker=Client" in explain(judged(evidence(samples(called, syscall="poll"))), PATHS)


RUNS = """\
def handler():
    return prices.max() - prices.min()
    numbers.append(int(text))
    digest.update(chunk)
    count += 1
    table = read_csv(StringIO(text))
"""


def drawn(seed, *weighed, unread=0):
    """A run of a program that computes, in which each stack is as often as its weight says. `unread`: so many
    samples more have none."""
    chance = random.Random(seed)
    stacks, weights = zip(*weighed, strict=True)
    found = [*[None] * unread, *chance.choices(stacks, weights, k=20 - unread)]
    taken = samples(*found, running=True, gil=GilState.SELF)
    return judged(evidence(taken), RUNS)


def reached(call, *names):
    return stack(*[frame(name, f"{SITE}/pandas/series.py", 9) for name in names], at(call, RUNS))


TAKING_TURNS = (
    (reached("prices.max()", "reduce", "Series.max"), 5),
    (reached("prices.max()", "check", "Series.max"), 5),
    (reached("prices.min()", "reduce", "Series.min"), 10),
)


CALLS_IN_CALLS = (
    (stack(frame("meets"), frame("fits"), frame("search"), frame("search"), frame("handler")), 4),
    (stack(frame("fits"), frame("search"), frame("handler")), 5),
    (stack(frame("search"), frame("search"), frame("handler")), 1),
)


GROUPING = [frame("apply", f"{SITE}/pandas/groupby.py", 9), frame("spreads")]
CALLED_BACK = (
    (stack(frame("spread"), *GROUPING), 4),
    (stack(frame("max", f"{SITE}/pandas/series.py", 9), frame("spread"), *GROUPING), 8),
    (stack(*GROUPING), 8),
)


A_LIBRARY = (
    (reached("read_csv(StringIO(text))", "read_low_memory", "read", "read_csv"), 13),
    (reached("read_csv(StringIO(text))", "concat", "read", "read_csv"), 2),
    (reached("StringIO(text)"), 5),
)


@pytest.mark.parametrize(
    ("stacks", "unread"),
    [
        (TAKING_TURNS, 0),
        (TAKING_TURNS, 18),
        (CALLS_IN_CALLS, 0),
        (A_LIBRARY, 0),
        (CALLED_BACK, 0),
        (((reached("int(text)"), 12), (reached("numbers.append(int(text))"), 8)), 0),
        (((reached("digest.update(chunk)"), 11), (reached("count += 1"), 9)), 0),
    ],
    ids=[
        "calls in turn",
        "two stacks",
        "functions that call each other",
        "a library in C and Python",
        "a library that calls back",
        "a quick call in a loop",
        "C calls in a loop",
    ],
)
def test_a_bug_has_one_fingerprint_over_many_runs(stacks, unread):
    runs = [drawn(seed, *stacks, unread=unread) for seed in range(20)]
    assert {run.cause for run in runs} <= {Cause.CPU, Cause.NATIVE_CPU}
    assert len({run.fingerprint for run in runs}) == 1


def test_without_a_sample_the_callback_is_the_identity():
    first = judged(evidence(names=CallbackNames(name="<function f at 0x7f21> worker-3")))
    second = judged(evidence(names=CallbackNames(name="<function f at 0x9999> worker-12")))
    other = judged(evidence(names=CallbackNames(name="step2")))
    assert first.fingerprint == second.fingerprint != other.fingerprint
    assert explain(other, PATHS) == ("scope=callback", "callback=step2")


@pytest.mark.parametrize(
    "name", ["QPushButton: Timer", 'QPushButton "buy": Timer', "QPushButton \"Bücher: 'neu'\": Timer"]
)
def test_object_names_are_not_in_the_fingerprint(name):
    found = judged(evidence(names=CallbackNames(name=name)))
    assert explain(found, PATHS) == ("scope=callback", "callback=QPushButton: Timer")


def test_a_gil_stall_is_its_holders():
    holder = Stack(
        frames=(frame("crunch", "/srv/app/jobs.py", 12), frame("Thread.run", f"{STDLIB}/threading.py"))
    )
    waits = {"waits_for_gil": True, "gil": GilState.OTHER, "holder_tid": 9, "holder_stack": holder}
    first, second = (
        judged(evidence(samples(*[stack(frame(name, APP, 3))] * 3, syscall="futex", **waits)))
        for name in "ab"
    )
    assert first.cause is Cause.GIL
    assert first.title == "GIL held by thread 9 in crunch (jobs.py:12)"
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize(("resizes", "of_both"), [(12, True), (6, True), (18, False)])
def test_threads_that_hold_the_gil_alike_are_one_bug(resizes, of_both):
    def held(count, tid, function):
        holder = Stack(frames=(frame(function, "/srv/app/jobs.py", tid),))
        waits = {"waits_for_gil": True, "gil": GilState.OTHER, "holder_tid": tid, "holder_stack": holder}
        return samples(*[stack(frame("handler", APP, 3))] * count, syscall="futex", **waits)

    taken = (*held(resizes, 11, "resize"), *held(20 - resizes, 12, "index"))
    placed = tuple(replace(one, at_ns=(1 + number) * 10 * MS) for number, one in enumerate(taken))
    stall = judged(evidence(placed, thread_names=((11, "resizer"), (12, "indexer"))))
    resize = ("holder.file=jobs.py", "holder.function=resize")
    index = ("holder.file=jobs.py", "holder.function=index")
    assert explain(stall, PATHS) == ("cause=gil", *(index if of_both else ()), *resize)
    first, second = "indexer in index (jobs.py:12)", "resizer in resize (jobs.py:11)"
    assert stall.title == "GIL held by " + (f"{first}, {second}" if of_both else second)


def test_collections_strike_by_chance_and_are_one_group():
    collection = Collection(begin_ns=0, end_ns=100 * MS, tid=70, generation=2)
    first, second = (
        judged(evidence(samples(*[stack(frame(name, APP, 3))] * 5, running=True), collections=(collection,)))
        for name in "ab"
    )
    assert first.cause is Cause.GC
    assert first.fingerprint == second.fingerprint


def test_a_collection_that_was_asked_for_is_its_lines():
    source = "def handler():\n    gc.collect()\n"
    asked = samples(*[stack(at("gc.collect()", source))] * 5, running=True, in_gc=True)
    stall = judged(evidence(asked), source)
    assert stall.cause is Cause.GC
    assert explain(stall, PATHS)[1:] == (
        "culprit.file=app.py",
        "culprit.function=handler",
        "blocker=collect",
    )


def test_a_wait_for_a_held_lock_is_its_holders():
    holder = Stack(frames=(frame("flush", "/srv/app/jobs.py", 12),))
    view = LockView(kind="lock", proof=LockProof.WITH)
    stalls = [
        judged(
            evidence(
                samples(
                    *[stack(frame(name, APP, 3))] * 3,
                    syscall="futex",
                    lock=view,
                    holder_tid=9,
                    holder_stack=holder,
                )
            )
        )
        for name in "ab"
    ]
    assert explain(stalls[0], PATHS) == (
        "cause=lock",
        "holder.file=jobs.py",
        "holder.function=flush",
    )
    assert stalls[0].fingerprint == stalls[1].fingerprint


def test_a_burst_of_one_callback_is_its_own():
    def burst(*names, taken=()):
        entries = tuple(Contributor(name=n, count=9, total_ns=t * MS, longest_ns=MS) for n, t in names)
        return explain(
            judged(
                evidence(
                    taken,
                    lasted_ms=300,
                    scope=StallScope.TURN,
                    turn_callbacks=99,
                    turn_callback_ns=290 * MS,
                    contributors=entries,
                )
            ),
            PATHS,
        )

    assert burst(("push 7", 200), ("poll", 80)) == ("scope=turn", "cause=burst", "contributor=push #")
    assert burst(("push", 150), ("poll", 140)) == ("scope=turn", "cause=burst")
    here = stack(frame("push", "/srv/app/app.py", 10))
    found = burst(("push", 150), ("poll", 140), taken=samples(*[here] * 25, running=True))
    assert found == ("scope=turn", "cause=burst", "culprit.file=app.py", "culprit.function=push")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("handler.<locals>.<listcomp>", "handler"),
        ("handler.<locals>.step.<locals>.<genexpr>", "handler.<locals>.step"),
        ("<generic parameters of handler>.handler", "handler"),
    ],
)
def test_names_that_differ_between_versions_of_python_are_one(older, newer):
    first, second = (
        judged(evidence(samples(*[stack(frame(name, APP, 3))] * 5, syscall="openat")))
        for name in (older, newer)
    )
    assert first.fingerprint == second.fingerprint


def test_a_module_of_the_standard_library_may_become_a_package():
    files = (f"{STDLIB}/pathlib.py", f"{STDLIB}/pathlib/_local.py")
    first, second = (
        judged(evidence(samples(*[stack(frame("Path.read_text", file, 3))] * 5, syscall="read")))
        for file in files
    )
    assert first.fingerprint == second.fingerprint
    assert "culprit.file=pathlib" in explain(first, PATHS)


def test_it_does_not_look_at_the_session():
    what = evidence(samples(*[stack(at("time.sleep(0.3)", SOURCE))] * 5, syscall="clock_nanosleep"))
    other = replace(SESSION, id="s2", pid=99, host="elsewhere", python="CPython 3.14.1")
    assert judged(what, SOURCE, session=other).fingerprint == BASE.fingerprint
