"""What a program and its settings say about stalls: scene, watch, expect, interceptors, filters."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
from datetime import timedelta

import pytest
from tests.program.programs.blocking import LONG_S, slow

import loopcanary

pytestmark = pytest.mark.native


def in_a_loop(*callbacks):
    async def main():
        for callback in callbacks:
            asyncio.get_running_loop().call_soon(callback)
        await asyncio.sleep(0.001)

    asyncio.run(main())


# ---- scene ------------------------------------------------------------------------------------


def test_a_scene_is_carried_by_the_stalls_in_it(watch):
    async def main():
        slow()
        with loopcanary.scene("checkout"):
            slow()
            await asyncio.sleep(0)
            slow()
        await asyncio.sleep(0)
        slow()

    with watch.installed():
        asyncio.run(main())
    assert [stall.scene for stall in watch.stalls()][1:] == ["checkout", None]


def test_scenes_of_tasks_side_by_side_do_not_mix(watch):
    async def work(name):
        with loopcanary.scene(name):
            for _ in range(2):
                await asyncio.sleep(0)
                slow()

    async def main():
        await asyncio.gather(*(asyncio.create_task(work(name), name=name) for name in ("one", "two")))

    with watch.installed():
        asyncio.run(main())
    stalls = watch.stalls()
    assert len(stalls) == 4
    assert all(stall.scene == stall.task for stall in stalls)


def test_a_scene_that_is_entered_late_in_a_stall_is_its_scene(watch):
    def finds_its_route_late():
        slow()
        with loopcanary.scene("found late"):
            slow()

    with watch.installed():
        in_a_loop(finds_its_route_late, slow)
    assert [stall.scene for stall in watch.stalls()] == ["found late", None]


def test_scenes_nest(watch):
    async def main():
        with loopcanary.scene("outer"):
            with loopcanary.scene("inner"):
                await asyncio.sleep(0)
                slow()
            await asyncio.sleep(0)
            slow()

    with watch.installed():
        asyncio.run(main())
    of_ours = [stall for stall in watch.stalls() if stall.culprit and stall.culprit.function == "slow"]
    assert [stall.scene for stall in of_ours] == ["inner", "outer"]  # a busy host may stop the loop's start


def test_scopes_do_nothing_in_an_unwatched_program():
    with loopcanary.scene("a"), loopcanary.watch("b"), loopcanary.expect("1s"):
        assert loopcanary.statistics() == {}


# ---- expect -----------------------------------------------------------------------------------


@pytest.mark.parametrize("grant", ["1h", timedelta(hours=1)], ids=["text", "timedelta"])
def test_what_was_expected_is_no_stall(watch, grant):
    def expected():
        with loopcanary.expect(grant):
            slow()

    with watch.installed() as canary:
        in_a_loop(expected)
        assert canary.statistics()["stalls_suppressed_expected"] == 1
    assert watch.stalls() == []


def test_longer_than_was_expected_is_a_stall(watch):
    def longer():
        with loopcanary.expect("120ms"):
            slow()

    with watch.installed():
        in_a_loop(longer)
    (stall,) = watch.stalls()
    assert stall.culprit.function == "slow"


def test_a_grant_is_for_its_callback_only(watch):
    def expected():
        with loopcanary.expect("2s"):
            pass

    with watch.installed():
        in_a_loop(expected, slow)
    assert [stall.culprit.function for stall in watch.stalls()] == ["slow"]


def test_a_grant_that_is_no_duration_is_refused_at_its_line():
    with pytest.raises(ValueError, match="soon"):
        loopcanary.expect("soon")


# ---- watch ------------------------------------------------------------------------------------


def test_work_on_a_thread_without_a_loop_is_timed(watch):
    def work():
        with loopcanary.watch("nightly job"):
            slow()

    with watch.installed():
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    (stall,) = watch.all_stalls()
    assert (stall.callback, stall.thread, stall.loop) == ("nightly job", "worker", "thread")
    assert stall.culprit.function == "slow"
    assert stall.duration_ns >= LONG_S * 1e9


def test_work_within_work_is_timed_once_as_the_outer_one(watch):
    with watch.installed(), loopcanary.watch("outer"), loopcanary.watch("inner"):
        slow()
    assert [stall.callback for stall in watch.stalls()] == ["outer"]


def test_work_may_have_a_threshold_of_its_own(watch):
    with watch.installed() as canary:
        with loopcanary.watch("may take long", threshold="1h"):
            slow()
        assert canary.statistics()["stalls_suppressed_expected"] == 1
        with loopcanary.watch("took too long", threshold=timedelta(milliseconds=120)):
            slow()
        with loopcanary.watch("is no grant to what follows"):
            slow()
    assert [stall.callback for stall in watch.stalls()] == ["took too long", "is no grant to what follows"]


def test_inner_works_threshold_is_not_its_callbacks(watch):
    def callback():
        with loopcanary.watch("part", threshold="1h"):
            slow()

    with watch.installed():
        in_a_loop(callback)
    (stall,) = watch.stalls()
    assert stall.callback.endswith("callback")


def test_a_threshold_that_is_no_duration_is_refused():
    with pytest.raises(ValueError, match="soon"):
        loopcanary.watch("job", threshold="soon")


def test_work_inside_a_callback_is_a_part_of_the_callback(watch):
    def callback():
        with loopcanary.watch("part"):
            slow()

    with watch.installed():
        in_a_loop(callback)
    (stall,) = watch.stalls()
    assert stall.callback.endswith("callback")


def test_failing_work_is_timed_and_its_exception_passes(watch):
    with watch.installed():
        with pytest.raises(LookupError), loopcanary.watch("failing"):  # noqa: PT012
            slow()
            raise LookupError
        with loopcanary.watch("short"):
            pass
    assert [stall.callback for stall in watch.stalls()] == ["failing"]


def test_work_over_an_uninstall_ends_nothing_of_the_next_engine(watch):
    watch.install()
    with loopcanary.watch("before"):
        loopcanary.uninstall()
        watch.install()
    with loopcanary.watch("after"):
        slow()
    loopcanary.uninstall()
    assert [stall.callback for stall in watch.stalls()] == ["after"]


def test_a_loop_inside_watched_work_is_not_the_work_s_stall(watch):
    with watch.installed(), loopcanary.watch("main program"):
        asyncio.run(asyncio.sleep(2 * LONG_S))
    assert watch.stalls() == []


# ---- interceptors -------------------------------------------------------------------------------


def test_an_interceptor_may_drop_a_stall(watch):
    @loopcanary.on_issue
    def drop(issue):
        return None

    with watch.installed() as canary:
        in_a_loop(slow)
        loopcanary.uninstall()
        assert canary.stalls == []
    assert watch.stalls() == []


def test_an_interceptor_may_change_a_stall(watch):
    @loopcanary.on_issue
    def rename(issue):
        return dataclasses.replace(issue, title="known to us")

    with watch.installed():
        in_a_loop(slow)
    assert [stall.title for stall in watch.stalls()] == ["known to us"]


def test_a_failing_interceptor_is_off_and_the_stall_stays(watch):
    calls = []

    @loopcanary.on_issue
    def broken(issue):
        calls.append(issue)
        raise ValueError("in the interceptor")

    with watch.installed():
        in_a_loop(slow, slow)
    assert len(calls) == 1
    assert [stall.callback for stall in watch.all_stalls()].count("slow") == 2


def test_an_interceptor_that_comes_late_counts_at_once(watch):
    with watch.installed():
        loopcanary.on_issue(lambda _issue: None)
        in_a_loop(slow)
    assert watch.stalls() == []


# ---- switches ------------------------------------------------------------------------------------


def test_with_LOOPCANARY_0_nothing_is_done(watch, monkeypatch):  # noqa: N802
    monkeypatch.setenv("LOOPCANARY", "0")
    before = asyncio.Handle.__dict__["_run"]
    assert watch.install() is None
    assert asyncio.Handle.__dict__["_run"] is before
    in_a_loop(slow)
    assert not watch.folder.exists()


def test_a_debuggers_trace_function_suppresses_stalls(watch):
    def tracer(frame, event, argument):
        return None

    before = sys.gettrace()
    tracer.__module__ = "some_debugger"
    with watch.installed():
        threading.settrace(tracer)
        sys.settrace(tracer)
        try:
            in_a_loop(slow)
            loopcanary.uninstall()
        finally:
            sys.settrace(before)
            threading.settrace(None)
    assert watch.stalls() == []


@pytest.fixture
def debugger_tool():
    if sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    if sys.monitoring.get_tool(sys.monitoring.DEBUGGER_ID) is not None:
        pytest.skip("these tests run under a debugger")
    sys.monitoring.use_tool_id(sys.monitoring.DEBUGGER_ID, "a debugger")
    yield
    sys.monitoring.free_tool_id(sys.monitoring.DEBUGGER_ID)


def test_a_monitoring_debugger_suppresses_stalls(watch, debugger_tool):
    with watch.installed():
        in_a_loop(slow)
    assert watch.stalls() == []


def test_while_debugging_reports_under_a_debugger(watch, debugger_tool):
    with watch.installed(while_debugging=True):
        in_a_loop(slow)
    assert len(watch.stalls()) == 1


def test_only_concern_drops_stalls_without_the_packages(watch):
    with watch.installed(concern=["some_other_package"], only_concern=True):
        in_a_loop(slow)
    assert watch.stalls() == []


def test_ignored_functions_are_left_out(watch):
    with watch.installed(ignore=["*/programs/blocking.py"]):
        in_a_loop(slow)
    assert watch.stalls() == []


def test_the_threshold_is_the_one_that_was_set(watch):
    with watch.installed(threshold="10ms"):
        in_a_loop(slow)
    with watch.installed(threshold="10s"):
        in_a_loop(slow)
    stalls = [stall for stall in watch.stalls() if stall.cause.value == "sleep"]
    assert [round(stall.threshold_ns, -4) for stall in stalls] == [10_000_000]
