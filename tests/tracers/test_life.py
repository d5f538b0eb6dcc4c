"""The life of a tracer: its steps and their guards, whatever comes between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.engine import Boundary
from loopcanary.model import TracerState
from loopcanary.model.tracer_states import TracerStep
from loopcanary.tracers.life import TracerLife, refusal, steps_of

CREATED, INITED, STARTED, STOPPED, DESTROYED = TracerState
INIT, START, STOP, DESTROY = TracerStep
ALLOWED = {
    (CREATED, INIT): [INIT],
    (CREATED, DESTROY): [DESTROY],
    (INITED, START): [START],
    (INITED, DESTROY): [DESTROY],
    (STARTED, STOP): [STOP],
    (STARTED, DESTROY): [STOP, DESTROY],
    (STOPPED, START): [START],
    (STOPPED, DESTROY): [DESTROY],
}
"""As Matrix's plugins; there a step that is not here throws, or does nothing of use."""


@pytest.mark.parametrize("state", TracerState)
@pytest.mark.parametrize("step", TracerStep)
def test_a_step_is_allowed_in_its_states_alone(state: TracerState, step: TracerStep):
    assert (refusal(state, step) is None) == ((state, step) in ALLOWED)
    if (state, step) in ALLOWED:
        assert list(steps_of(state, step)) == ALLOWED[state, step]


@pytest.mark.parametrize(
    ("state", "step", "why"),
    [
        (STARTED, START, "it is already started"),
        (CREATED, START, "it is not initialised"),
        (INITED, STOP, "it is not started"),
        (STOPPED, STOP, "it is not started"),
        (STOPPED, INIT, "it is already initialised"),
        (DESTROYED, DESTROY, "it is destroyed"),
    ],
)
def test_a_refusal_says_why(state: TracerState, step: TracerStep, why: str):
    assert refusal(state, step) == why


class Lived:
    """A life that writes down what is called and heard; `inside` is called within the steps that it names."""

    def __init__(self, **inside: Callable[[], object]) -> None:
        self.did: list[str] = []
        self.heard: list[str] = []
        self.boundary = Boundary(lambda _: None)
        self.inside = inside
        self.life = TracerLife(
            "mine",
            {step: lambda step=step: self._call(step.value) for step in TracerStep},  # type: ignore[misc]
            call=self.boundary.call,
            heard=lambda name, state: self.heard.append(f"{name} {state.value}"),
        )

    def _call(self, name: str) -> None:
        self.did.append(name)
        self.inside.get(name, lambda: None)()

    def steps(self, *steps: TracerStep) -> list[str | None]:
        return [self.life.step(step) for step in steps]


def fails() -> None:
    raise OSError("no room")


def test_a_tracer_is_started_again_after_a_stop():
    one = Lived()
    assert one.steps(INIT, START, STOP, START, DESTROY) == [None] * 5
    assert one.did == ["init", "start", "stop", "start", "stop", "destroy"]
    assert one.heard == [
        f"mine {state}" for state in ("inited", "started", "stopped", "started", "stopped", "destroyed")
    ]
    assert one.life.steps_ns > 0


@given(st.lists(st.sampled_from([*TracerStep, "end"])))
def test_a_tracer_is_called_in_order_whatever_is_asked(asked: list[Any]):
    one = Lived()
    for step in asked:
        if step == "end":
            one.life.end()
        else:
            one.life.step(step)
    state, did = CREATED, list(one.did)
    for name in did:
        step = TracerStep(name)
        is_end = (state, step) == (INITED, STOP) and "end" in asked
        assert is_end or refusal(state, step) is None
        state = {INIT: INITED, START: STARTED, STOP: STOPPED, DESTROY: DESTROYED}[step]
    assert state is one.life.state
    if "end" in asked:
        assert state not in (INITED, STARTED)


@pytest.mark.parametrize(
    ("failing", "did", "heard"),
    [
        ("init", ["init", "stop"], ["mine stopped"]),
        ("start", ["init", "start", "stop"], ["mine inited", "mine stopped"]),
    ],
)
def test_one_that_fails_to_begin_is_stopped_and_stays_so(failing: str, did: list[str], heard: list[str]):
    one = Lived(**{failing: fails})
    one.steps(INIT, START)
    assert (one.did, one.heard, one.life.state) == (did, heard, STOPPED)
    assert one.steps(START, START) == ["it has failed, and is switched off"] * 2
    assert one.boundary.counts() == {"failures_tracer mine": 1}


def test_one_that_fails_to_stop_is_stopped():
    one = Lived(stop=fails)
    assert one.steps(INIT, START, STOP) == [None] * 3
    assert one.life.state is STOPPED
    assert one.boundary.counts() == {"failures_end of tracer mine": 1}


def test_a_step_in_the_middle_of_another_is_refused():
    refused: list[str | None] = []
    one = Lived(start=lambda: refused.append(one.life.step(STOP)))
    assert one.steps(INIT, START) == [None, None]
    assert refused == ["another step is in progress"]
    assert one.life.state is STARTED


@pytest.mark.parametrize("during", ["init", "start"])
def test_an_end_in_the_middle_of_a_step_comes_after_it(during: str):
    one = Lived(**{during: lambda: one.life.end()})  # noqa: PLW0108 - there is none yet
    one.steps(INIT, START)
    assert one.did == [*dict.fromkeys(("init", during)), "stop"]
    assert one.life.step(START) == "the engine ends"


def test_a_listener_may_ask_for_a_step():
    one = Lived()
    hear = one.heard.append
    one.life = TracerLife(
        "mine",
        {},
        call=one.boundary.call,
        heard=lambda _, state: (hear(state.value), state is STARTED and one.life.step(STOP)),
    )
    one.steps(INIT, START)
    assert one.heard == ["inited", "started", "stopped"]


def test_a_forked_child_stops_it_and_reports_nothing():
    one = Lived()
    one.steps(INIT)
    one.life._turn.acquire()  # the parent's thread is in the middle of a step
    one.life.is_forked()
    one.life.end()
    assert one.did == ["init", "stop"]
    assert one.heard == ["mine inited"]
