"""A program on trio sees what it sees without loopcanary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback

import pytest
import trio

from loopcanary import _native


class Recorder(trio.abc.Instrument):
    def __init__(self):
        self.heard = []

    def before_run(self):
        self.heard.append("before_run")

    def after_run(self):
        self.heard.append("after_run")

    def before_task_step(self, task):
        self.heard.append(("before", task.name))

    def after_task_step(self, task):
        self.heard.append(("after", task.name))

    def before_io_wait(self, timeout):  # noqa: ARG002 - trio's
        self.heard.append("before_io_wait")

    def after_io_wait(self, timeout):  # noqa: ARG002 - trio's
        self.heard.append("after_io_wait")


class Raises(trio.abc.Instrument):
    def after_task_step(self, task):  # noqa: ARG002 - trio's
        raise ValueError("an instrument that fails")


def heard():
    recorder = Recorder()

    async def main():
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        runner = trio.lowlevel.current_task()._runner
        return [
            name in runner.instruments for name in ("before_run", "before_task_step", "task_exited", "_all")
        ]

    trio._core._run._r.seed(0)  # whose turn it is, is drawn by lot
    return trio.run(main, instruments=[recorder]), recorder.heard


def test_instruments_hear_the_same(watch):
    plain = heard()
    with watch.installed():
        assert heard() == plain


def test_an_instrument_that_raises_is_removed_and_logged(watch, caplog):
    async def main():
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    with watch.installed():
        trio.run(main, instruments=[Raises()])
    assert [record.name for record in caplog.records] == ["trio.abc.Instrument"]


def test_the_group_that_a_program_sees_is_trio_s(watch):
    async def main():
        group = trio.lowlevel.current_task()._runner.instruments
        return type(group).__name__, type(group).__module__, repr(group), list(group)

    async def is_ours():
        group = trio.lowlevel.current_task()._runner.instruments
        return isinstance(group, _native.TrioGroup)

    plain = trio.run(main)
    with watch.installed():
        assert trio.run(main) == plain
        assert trio.run(is_ours)


def failing(what):
    async def fails():
        await trio.lowlevel.checkpoint()
        raise what("on purpose")

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
            await trio.sleep_forever()

    try:
        trio.run(main)
    except BaseException as error:  # noqa: BLE001 - Control-C and SystemExit, too
        return traceback.format_exception(error)
    return []


@pytest.mark.parametrize("what", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_a_task_raises(watch, what):
    plain = failing(what)
    with watch.installed():
        assert failing(what) == plain
    assert any("on purpose" in line for line in plain)


def test_control_c(watch):
    async def main():
        os.kill(os.getpid(), signal.SIGINT)
        await trio.sleep_forever()

    with watch.installed(), pytest.raises(KeyboardInterrupt):
        trio.run(main)


def test_what_a_signal_s_handler_raises_as_a_run_begins(watch, monkeypatch):
    def handler(*_):
        raise LookupError("of the program")

    before = signal.signal(signal.SIGUSR1, handler)
    monkeypatch.setattr("loopcanary.probes.trio._note_guest", lambda _: signal.raise_signal(signal.SIGUSR1))
    try:
        with (
            watch.installed(),
            pytest.raises(trio.TrioInternalError) as raised,
        ):  # as anywhere in trio's own code
            trio.run(trio.sleep, 0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert isinstance(raised.value.__cause__, LookupError)


def test_cancelled_tasks_end_as_ever(watch):
    async def main():
        with trio.move_on_after(0.01) as scope:
            await trio.sleep_forever()
        return scope.cancelled_caught

    with watch.installed():
        assert trio.run(main)


@pytest.mark.parametrize("suite", ["test_instrumentation", "test_guest_mode", "test_local"])
def test_tests_of_trio_s_own(tmp_path, suite):
    pytest.importorskip(f"trio._core._tests.{suite}", reason="this trio is installed without its tests")
    options = ["-q", "-p", "no:cacheprovider", "-p", "trio._tests.pytest_plugin", "-W", "ignore"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LOOPCANARY", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, "-m", "loopcanary", "run", "--quiet", "--store", str(tmp_path / "store"),
         "-m", "pytest", *options, "--pyargs", f"trio._core._tests.{suite}"],
        capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path, env=own,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
