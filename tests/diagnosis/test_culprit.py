"""Which line a stall is blamed on, and in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.diagnosis.cases import (
    APP,
    ASYNC,
    CLOCK,
    MS,
    PATHS,
    PLAIN,
    SESSION,
    SITE,
    STDLIB,
    Texts,
    at,
    evidence,
    frame,
    judged,
    samples,
    stack,
)

from loopcanary.diagnosis.judgement import diagnose
from loopcanary.model import CallbackNames, Cause, Config, GilState, Severity, Stack, StallScope, StallState

SOURCE = """\
import time
async def handler():
    time.sleep(0.3)
    first()
    second()
    rows = [slow(x) for x in xs]
"""
LIBRARY = f"{SITE}/requests/api.py"


def culprit_of(*stacks, source=SOURCE, **more):
    return judged(evidence(samples(*stacks, syscall="clock_nanosleep"), **more), source).culprit


def test_the_innermost_own_frame_is_the_culprit():
    found = culprit_of(stack(frame("Session.send", LIBRARY), frame("get", LIBRARY), frame("handler", APP, 3)))
    assert (found.function, found.file, found.line, found.in_app) == ("handler", APP, 3, True)


def test_what_called_the_loop_is_not_blamed():
    found = culprit_of(stack(frame("consume", f"{SITE}/aiokafka/consumer.py", 7)))
    assert (found.function, found.in_app) == ("consume", False)


def test_a_thread_without_a_loop_is_blamed_by_its_whole_stack():
    found = culprit_of(Stack(frames=(frame("get", LIBRARY), frame("main", APP, 5))))
    assert found.function == "main"


def test_loopcanarys_own_frames_are_left_out_everywhere():
    wrapped = stack(frame("watch", f"{SITE}/loopcanary/engine/watch.py"), at("time.sleep(0.3)", SOURCE))
    stall = judged(evidence(samples(wrapped, syscall="clock_nanosleep")), SOURCE)
    assert stall.blocker.function is None
    assert not any("loopcanary" in shown.file for shown in stall.stacks[0].frames)


def test_wrappers_of_the_standard_library_are_never_blamed():
    found = culprit_of(
        stack(frame("inner", f"{STDLIB}/contextlib.py"), frame("loads", f"{STDLIB}/json/__init__.py"))
    )
    assert found.function == "loads"


def test_plumbing_alone_has_no_culprit():
    stall = judged(
        evidence(samples(stack(), syscall="clock_nanosleep"), names=CallbackNames(name="time.sleep"))
    )
    assert stall.culprit is None
    assert stall.title == "sleeping in time.sleep"


VIEWS = "async def handler():\n    page.render(rows=rows)\n"
JINJA = frame("Template.render", f"{SITE}/jinja2/environment.py", 1295)
MAKO = frame("_exec_template", f"{SITE}/mako/runtime.py", 931)
TORNADO = frame("Template.generate", f"{SITE}/tornado/template.py", 361)


def rendered(*frames):
    """A stall in code of these frames below `page.render`; templates have files with the program's text."""
    texts = Texts(app=VIEWS)
    texts.read = lambda file, read=texts.read: read(file if file.endswith("/tables.py") else APP)
    taken = samples(*[stack(*frames, at("page.render(rows=rows)", VIEWS))] * 12, running=True)
    return judged(evidence(taken), sources=texts)


@pytest.mark.parametrize(
    ("file", "function", "engine"),
    [
        ("templates/orders.html", "root", JINJA),
        ("templates/orders.page", "root", JINJA),
        ("templates/orders", "block_rows", JINJA),
        ("templates/orders.page", "root.<locals>.macro", JINJA),
        ("mako_modules/orders.html.py", "render_row", MAKO),
        ("mako_modules/orders.page.py", "render_body.<locals>.row", MAKO),
        ("mako_modules/orders.py", "render_body", MAKO),
        ("orders_html.generated.py", "_tt_execute", TORNADO),
    ],
)
def test_a_template_is_not_blamed_but_who_renders_it(file, function, engine):
    """Its code has lines that the template does not have."""
    stall = rendered(frame(function, f"/srv/app/{file}", 2, column=5, end_column=9), engine)
    assert (stall.culprit.function, stall.culprit.line) == ("handler", 2)
    assert stall.title == "page.render(rows=rows) in handler (app.py:2)"
    assert stall.stacks[0].frames[0].line == 0


def test_a_template_s_advice_is_that_of_its_engine():
    assert "jinja2" in rendered(frame("root", "/srv/app/templates/orders.page", 33), JINJA).advice


@pytest.mark.parametrize(
    ("file", "function", "outer"),
    [
        ("shop/tables.py", "render_row", (frame("render_body", "/srv/app/orders.mako"), MAKO)),
        ("bin/serve", "show_row", (frame("root", "/srv/app/orders"), JINJA)),
        ("site.wsgi", "root", ()),
    ],
    ids=["a module below Mako", "a script below Jinja2", "a script"],
)
def test_what_a_template_calls_is_blamed(file, function, outer):
    stall = rendered(frame(function, f"/srv/app/{file}", 7), *outer)
    assert (stall.culprit.function, stall.culprit.line) == (function, 7)


def test_who_renders_is_no_template_whatever_its_name_is():
    page = frame("root", "/srv/app/orders", 33)
    assert rendered(page, JINJA, frame("root", "/srv/app/site.wsgi", 7)).culprit.line == 7


IMPORTS = "def handler():\n    import plugins\n"
STATEMENT = at("import plugins", IMPORTS)
MACHINERY = tuple(
    frame(name, "<frozen importlib._bootstrap>", 9)
    for name in ("_call_with_frames_removed", "_find_and_load_unlocked", "_find_and_load")
)
PACKAGE = "/srv/app/plugins"


def import_of(*outer, **more):
    """Twelve plug-ins, one after the other, by a package that is imported by these frames."""
    bodies = [
        (
            frame("<module>", f"{PACKAGE}/plugin_{number}.py", 3),
            *MACHINERY,
            frame("<module>", f"{PACKAGE}/__init__.py", number + 1),
            *MACHINERY,
        )
        for number in range(12)
    ]
    return judged(evidence(samples(*[stack(*body, *outer) for body in bodies], running=True)), **more)


def test_an_import_is_blamed_on_its_statement():
    stall = import_of(STATEMENT, source=IMPORTS)
    assert (stall.cause, stall.culprit.function, stall.culprit.line) == (Cause.IMPORT, "handler", 2)
    assert (stall.blocker.call, stall.blocker.function) == ("import plugins", None)
    assert stall.title == "import plugins in handler (app.py:2)"
    assert stall.portions == ()


def test_no_function_of_importlib_is_in_a_title():
    assert import_of(STATEMENT).title == "importing modules in handler (app.py:2)"


def test_a_library_that_imports_late_is_called_by_the_culprit():
    stall = import_of(frame("read_excel", f"{SITE}/pandas/io.py", 7), frame("load", APP, 5))
    assert (stall.culprit.function, stall.culprit.line, stall.blocker.function) == ("load", 5, "read_excel")


def test_a_server_that_imports_the_program_is_not_to_blame():
    stall = import_of(frame("<module>", APP, 4), *MACHINERY, frame("load", f"{SITE}/uvicorn/config.py", 7))
    assert (stall.culprit.file, stall.culprit.line) == (APP, 4)
    body = stack(frame("<module>", APP, 4), *MACHINERY, frame("load", f"{SITE}/uvicorn/config.py", 7))
    assert culprit_of(*[body] * 12).line == 4


def test_foreign_code_is_blamed_where_it_imports():
    inside = frame("<module>", f"{SITE}/numpy/core.py", 3)
    taken = stack(inside, *MACHINERY, frame("load", f"{SITE}/server/config.py", 7))
    found = culprit_of(*[taken] * 12)
    assert (found.function, found.in_app) == ("load", False)


def test_the_function_that_held_most_is_the_culprit():
    light = stack(frame("parse", APP, 20), frame("handler", APP, 4))
    heavy = stack(frame("render", APP, 30), frame("handler", APP, 5))
    assert culprit_of(light, heavy, heavy, heavy).function == "render"


def test_a_caller_is_blamed_where_no_function_under_it_held_half():
    parts = [stack(frame(name, APP, 20), frame("handler", APP, 4)) for name in ("a", "b", "c") * 3]
    assert culprit_of(*parts).function == "handler"


def test_the_heaviest_of_unrelated_callbacks_is_blamed():
    parts = [stack(frame(name, APP, 20)) for name in ("a", "b", "c", "c", "d", "e")]
    assert culprit_of(*parts).function == "c"


def test_recursion_is_one_function_at_its_innermost_line():
    deep = stack(
        frame("walk", APP, 12), frame("walk", APP, 14), frame("walk", APP, 14), frame("handler", APP, 4)
    )
    found = culprit_of(deep, deep)
    assert (found.function, found.line) == ("walk", 12)


def test_the_line_with_most_weight_is_named_within_the_function():
    lines = [stack(frame("handler", APP, line)) for line in (3, 5, 5, 5, 4)]
    assert culprit_of(*lines).line == 5


def test_a_comprehensions_frame_goes_by_its_function():
    found = culprit_of(stack(frame("handler.<locals>.<listcomp>", APP, 6), frame("handler", APP, 6)))
    assert (found.qualname, found.function, found.line) == ("handler", "handler", 6)


def test_packages_of_concern_replace_the_rule_of_places():
    placed = stack(frame("get", LIBRARY), frame("handler", APP, 3))
    stall = judged(evidence(samples(placed, syscall="poll")), SOURCE, config=Config(concern=("requests",)))
    assert (stall.culprit.function, stall.culprit.in_app) == ("get", True)


def test_own_code_out_of_concern_is_preferred_to_a_library():
    placed = stack(frame("get", LIBRARY), frame("handler", APP, 3))
    stall = judged(evidence(samples(placed, syscall="poll")), SOURCE, config=Config(concern=("billing",)))
    assert (stall.culprit.function, stall.culprit.in_app) == ("handler", False)


def test_the_whole_stall_is_described():
    what = evidence(samples(*[stack(at("time.sleep(0.3)", SOURCE))] * 28, syscall="clock_nanosleep"))
    stall = judged(what, SOURCE)
    assert stall.title == "time.sleep(0.3) in handler (app.py:3)"
    assert (stall.id, stall.session, stall.pid) == ("s1-3", "s1", 7)
    assert stall.culprit.source == "time.sleep(0.3)"
    assert (stall.culprit.column, stall.culprit.end_column) == (1, 16)
    assert (stall.blocker.call, stall.blocker.function) == ("time.sleep(0.3)", None)
    assert "asyncio.sleep" in stall.advice
    assert (stall.callback, stall.task) == ("handler", "Task-1")
    assert stall.began_wall_ns == CLOCK.wall_ns
    assert stall.samples == 28
    assert len(stall.stacks) == 1
    assert stall.stacks[0].weight_ns == stall.duration_ns
    assert [shown.in_app for shown in stall.stacks[0].frames] == [True, False, False, False, True]


def test_a_stall_that_goes_on_lasts_to_the_last_look():
    what = evidence(samples(stack(frame("handler")), syscall="futex"), end_ns=None, last_look_ns=6_000 * MS)
    stall = judged(what, state=StallState.ONGOING)
    assert stall.duration_ns == 6_000 * MS
    assert stall.severity is Severity.ANR
    assert stall.state is StallState.ONGOING


@pytest.mark.parametrize(
    ("lasted_ms", "severity"), [(999, Severity.STALL), (1_000, Severity.HANG), (5_000, Severity.ANR)]
)
def test_severity_by_duration(lasted_ms, severity):
    assert judged(evidence(lasted_ms=lasted_ms)).severity is severity


def test_a_burst_is_titled_by_its_turn():
    turn = evidence(
        samples(*[stack(frame("tick", APP, 3))] * 4, running=True),
        scope=StallScope.TURN,
        names=None,
        turn_callbacks=1412,
        turn_callback_ns=55 * MS,
        longest_callback_ns=MS,
    )
    stall = judged(turn)
    assert stall.cause is Cause.BURST
    assert stall.title == "1,412 callbacks in one turn, mostly in tick (app.py:3)"
    assert "Share of the samples: tick 100 %." in stall.evidence


def test_a_source_written_after_the_session_began_gives_no_text():
    what = evidence(samples(stack(at("time.sleep(0.3)", SOURCE)), syscall="clock_nanosleep"))
    later = Texts(modified_wall_ns=SESSION.started_wall_ns + 1, app=SOURCE)
    stall = diagnose(what, SESSION, Config(), CLOCK, state=StallState.ENDED, sources=later, paths=PATHS)
    assert stall.culprit.source is None
    assert stall.blocker is None
    assert stall.title == "sleeping in handler (app.py:3)"


def test_an_expression_of_a_computing_loop_is_no_blocker():
    what = evidence(samples(*[stack(at("xs", SOURCE))] * 2, stack(at("rows", SOURCE)), running=True))
    assert judged(what, SOURCE).blocker is None


def test_the_call_that_a_python_loop_is_at_is_not_its_work():
    source = "def hold():\n    while time.time() < until:\n        pass\n"
    here = stack(at("time.time()", source, function="hold"))
    stall = judged(evidence(samples(*[here] * 12, running=True, gil=GilState.SELF)), source)
    assert (stall.cause, stall.blocker) == (Cause.CPU, None)
    assert stall.title == "Python code computing in hold (app.py:2)"


def test_a_call_that_reached_python_is_the_work():
    source = "def snapshot():\n    return copy.deepcopy(orders)\n"
    call = at("copy.deepcopy(orders)", source, function="snapshot")
    steps = [
        stack(frame(name, f"{STDLIB}/copy.py", line), call)
        for line, name in enumerate(("deepcopy", "_copy") * 6)
    ]
    stall = judged(evidence(samples(*steps, stack(call), running=True, gil=GilState.SELF)), source)
    assert stall.cause is Cause.CPU
    assert stall.title == "copy.deepcopy(orders) in snapshot (app.py:2)"


@pytest.mark.parametrize(
    ("times", "function"), [((7, 3), "lib_0"), ((5, 5), None)], ids=["one that held most", "many in turn"]
)
def test_a_function_is_named_if_it_held_most_of_the_time(times, function):
    parts = [
        stack(frame(f"lib_{i}", LIBRARY), at("first()", SOURCE)) for i in (0, 1) for _ in range(times[i])
    ]
    stall = judged(evidence(samples(*parts, running=True)), SOURCE)
    assert (stall.blocker.call, stall.blocker.function) == ("first()", function)


def test_calls_that_share_the_time_give_no_blocker_text():
    parts = [
        stack(frame(f"lib_{i}", LIBRARY), at(call, SOURCE))
        for i, call in enumerate(("first()", "second()") * 3)
    ]
    stall = judged(evidence(samples(*parts, running=True)), SOURCE)
    assert stall.blocker is None


@pytest.mark.parametrize(
    ("made", "below", "blamed"),
    [
        (frame("user", "<dynamic-code>", 2), (), "user"),
        (frame("<module>", "<cell>", 2), (), "<module>"),
        (frame("user", "<dynamic-code>", 2), (frame("get", LIBRARY),), "handler"),
        (frame("__init__", "<string>", 3), (), "handler"),
        (frame("dot", "<__array_function__ internals>", 200), (), "handler"),
        (frame("root", "<template>", 7), (), "handler"),
    ],
)
def test_code_made_while_the_program_ran_is_blamed_where_it_spent_the_time(made, below, blamed):
    culprit = culprit_of(*[stack(*below, made, at("first()", SOURCE))] * 12)
    assert culprit.function == blamed
    assert culprit.in_app


def test_made_code_that_a_package_calls_is_blamed_without_own_code_around_it():
    made = frame("user", "<dynamic-code>", 2, code_flags=PLAIN)
    stall = judged(
        evidence(
            samples(*[stack(made, frame("call", LIBRARY, code_flags=ASYNC))] * 12, syscall="clock_nanosleep")
        )
    )
    assert (stall.culprit.function, stall.cause) == ("user", Cause.SLEEP)
    assert "to_thread" not in stall.advice


def test_no_c_call_is_told_of_code_whose_source_is_gone():
    loops = samples(
        *[stack(frame("<module>", "<cell>", 2), at("first()", SOURCE))] * 12, running=True, gil=GilState.SELF
    )
    assert judged(evidence(loops), SOURCE).cause is Cause.CPU
    waits = samples(
        *[stack(frame("<module>", "<cell>", 2), at("first()", SOURCE))] * 12, running=True, gil=GilState.FREE
    )
    assert judged(evidence(waits), SOURCE).cause is Cause.NATIVE_CPU


@pytest.mark.parametrize(
    "broken", [[], [frame("f", "", 0)], [frame("", "<string>", -5, column=9, end_column=3)]]
)
def test_odd_frames_raise_nothing(broken):
    stall = judged(evidence(samples(stack(*broken), syscall="futex")), SOURCE)
    assert stall.samples == 1


def test_samples_out_of_order_or_outside_the_stall_raise_nothing():
    taken = samples(*[stack(frame("handler"))] * 3, running=True)
    odd = (taken[2], replace(taken[0], at_ns=-5), replace(taken[1], at_ns=10**12))
    stall = judged(evidence(odd, lasted_ms=100))
    assert sum(entry.weight_ns for entry in stall.stacks) == 100 * MS
