from __future__ import annotations

import os
import sys
from types import ModuleType

import pytest

import loopcanary
from loopcanary import _startup
from loopcanary.registry import awaited


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The calls of install(), which does nothing here."""
    made: list[dict[str, object]] = []
    monkeypatch.setattr(loopcanary, "install", lambda **options: made.append(options), raising=False)
    monkeypatch.setattr(_startup, "_called", False)
    monkeypatch.setattr(_startup, "_waiting", None)
    monkeypatch.setattr(loopcanary, "_when_used", None)
    monkeypatch.setitem(sys.modules, "asyncio.base_events", ModuleType("asyncio.base_events"))
    monkeypatch.setattr(sys, "orig_argv", ["python", "app.py"])
    monkeypatch.delenv("LOOPCANARY_DEBUG", raising=False)
    monkeypatch.delenv("LOOPCANARY_RUN_PID", raising=False)
    return made


def test_it_starts_the_engine_once_a_process(calls):
    _startup.start()
    _startup.start()
    assert calls == [{"_from_startup": True}]


def test_it_waits_for_a_program_that_may_have_a_loop(calls, monkeypatch):
    for module in awaited():
        monkeypatch.delitem(sys.modules, module, raising=False)
    _startup.start()
    assert calls == []
    _startup.begin_now()
    _startup.begin_now()
    assert calls == [{"_from_startup": True}]


def test_it_leaves_tools_alone(calls, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "pip", "install", "app"])
    _startup.start()
    assert calls == []


def test_it_watches_a_tool_that_it_is_asked_to_run(calls, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "pip", "install", "app"])
    monkeypatch.setenv("LOOPCANARY_RUN_PID", str(os.getpid()))
    _startup.start()
    assert calls == [{"_from_startup": True}]


def test_a_tool_that_the_program_starts_is_left_alone(calls, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "pip", "install", "app"])
    monkeypatch.setenv("LOOPCANARY_RUN_PID", str(os.getppid()))
    _startup.start()
    assert calls == []


def fails(**_options: object) -> None:
    raise OSError("no space left")


def test_a_failure_is_silent(calls, monkeypatch, capsys):
    monkeypatch.setattr(loopcanary, "install", fails, raising=False)
    _startup.start()
    assert capsys.readouterr().err == ""


def test_a_failure_is_one_line_where_it_was_asked_for(calls, monkeypatch, capsys):
    monkeypatch.setattr(loopcanary, "install", fails, raising=False)
    monkeypatch.setenv("LOOPCANARY_DEBUG", "1")
    _startup.start()
    assert capsys.readouterr().err == "loopcanary: not started: OSError: no space left\n"


def test_it_needs_no_stderr_to_fail(calls, monkeypatch):
    monkeypatch.setattr(loopcanary, "install", fails, raising=False)
    monkeypatch.setenv("LOOPCANARY_DEBUG", "1")
    monkeypatch.setattr(sys, "stderr", None)
    _startup.start()


def test_a_failure_is_one_line_for_who_ran_the_program(calls, monkeypatch, capsys):
    monkeypatch.setattr(loopcanary, "install", fails, raising=False)
    monkeypatch.setenv("LOOPCANARY_RUN_PID", str(os.getpid()))
    _startup.start()
    assert capsys.readouterr().err == "loopcanary: not started: OSError: no space left\n"


@pytest.mark.parametrize(
    "command_line",
    [
        "python -m pip install app",
        "python3.12 -Im pip install app",
        "python -W error -X dev -m pip list",
        "python -Werror -mpip list",
        "python -m ensurepip",
        "python -m venv folder",
        "python -m build",
        "python -m loopcanary run app.py",
        "python /usr/bin/pip install app",
        "python /usr/bin/pip3.12 install app",
        "python /lib/pip/__pip-runner__.py install app",
        "python /lib/pyproject_hooks/_in_process/_in_process.py build_wheel",
        "python /usr/bin/loopcanary run app.py",
        "python Scripts/loopcanary.exe run app.py",
    ],
)
def test_this_is_a_tool(command_line: str):
    assert _startup.is_tool(command_line.split())


def test_the_resource_tracker_is_a_tool():
    command = "from multiprocessing.resource_tracker import main;main(7)"
    assert _startup.is_tool(["python", "-s", "-c", command])


@pytest.mark.parametrize(
    "command_line",
    [
        "python",
        "python app.py",
        "python app.py -m pip",
        "python -X pip app.py",
        "python -u -W ignore app.py",
        "python -m uvicorn app:app",
        "python -m pipeline",
        "python pipeline.py",
        "python -c pass",
        "python -",
        "python --check-hash-based-pycs always app.py",
        "python /usr/bin/gunicorn app:app",
    ],
)
def test_this_is_a_program(command_line: str):
    assert not _startup.is_tool(command_line.split())


def test_a_worker_of_multiprocessing_is_a_program():
    command = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"
    assert not _startup.is_tool(["python", "-c", command, "--multiprocessing-fork"])
