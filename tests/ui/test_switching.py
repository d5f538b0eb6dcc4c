"""Tracers of a running process on its page: shown, stopped and started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starlette.testclient import TestClient
from tests.store.samples import session
from tests.ui.conftest import HOST, TOOLS, client_of, let_in

from loopcanary.model import Session, SessionEnd, TracerState, TracerStatus
from loopcanary.model.figures.tracers import TracerStep
from loopcanary.store import Store

RUNS = session(id="s9", ended_wall_ns=None, end=SessionEnd.RUNNING)
STARTED = TracerStatus(name="<locks>", state=TracerState.STARTED, steps_ns=2_000_000)
FAILED = TracerStatus(name="own", state=TracerState.STOPPED, failed="OSError: no room")


class Program:
    """Tools that see one process, whose tracer is switched."""

    def __init__(self, store: Store) -> None:
        store.put([RUNS], [])
        self.locks = STARTED
        self.client: TestClient = let_in(
            client_of(store, tools=replace(TOOLS, tracers=self.tracers, switch=self.switch))
        )

    def tracers(self, one: Session) -> Sequence[TracerStatus] | None:
        return (self.locks, FAILED) if one.id == RUNS.id else None

    def switch(self, one: Session, step: TracerStep, name: str) -> str | None:
        assert one.id == RUNS.id
        if name != STARTED.name:
            return f"there is no {name} here"
        self.locks = replace(
            STARTED, state=TracerState.STOPPED if step is TracerStep.STOP else TracerState.STARTED
        )
        return None

    def page(self) -> str:
        return self.client.get("/session", params={"id": RUNS.id}).text

    def post(self, **form: str) -> tuple[int, str]:
        answer = self.client.post("/session/tracer", data=form, headers={"Origin": f"http://{HOST}"})
        return answer.status_code, answer.headers.get("location", answer.text)


def test_a_running_process_has_its_tracers_on_its_page(store: Store):
    program = Program(store)
    assert "&lt;locks&gt;" in program.page()
    assert "started; its steps took 2.00 ms" in program.page()
    assert 'value="stop"' in program.page()
    assert "OSError: no room" in program.page()
    assert 'value="start"' not in program.page()


def test_a_button_stops_a_tracer_and_starts_it_again(store: Store):
    program = Program(store)
    assert program.post(id="s9", name="<locks>", step="stop") == (303, "/session?id=s9")
    assert 'value="start"' in program.page()
    assert 'value="stop"' not in program.page()
    assert program.post(id="s9", name="<locks>", step="start") == (303, "/session?id=s9")
    assert 'value="stop"' in program.page()


def test_what_cannot_be_switched_is_said(store: Store):
    program = Program(store)
    for form, words in (
        ({"id": "s9", "name": "<b>", "step": "stop"}, "there is no &lt;b&gt; here"),
        ({"id": "s9", "name": "<locks>", "step": "destroy"}, "no such process or step"),
        ({"id": "s1", "name": "<locks>", "step": "stop"}, "no such process or step"),
    ):
        status, text = program.post(**form)
        assert status == 503
        assert words in text


def test_other_processes_have_none(store: Store):
    store.put([session(id="s1")], [])
    assert "Tracers" not in let_in(client_of(store)).get("/session", params={"id": "s1"}).text
