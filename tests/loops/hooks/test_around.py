"""LoopHooks around a library's functions: the same with the native engine and the portable one."""

from __future__ import annotations

import pytest

import loopcanary

CALLBACKS = 5


class Reactor:
    """As a library's: each method is one that a probe brackets."""

    def wait(self, *args, **names):
        return self, args, names

    def handle(self, subject, *args, **names):
        return self, subject, args, names

    def fail(self, subject):
        raise LookupError(subject)

    def run_all(self, hooks, count):
        for _ in range(count):
            hooks.works_end()
            hooks.work_begin("delayed")
        return "ran"


class Subject:
    protocol = 1.5


@pytest.fixture(params=[pytest.param("native", marks=pytest.mark.native), "portable"])
def canary(request, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPCANARY_ENGINE", request.param)
    started = loopcanary.install(threshold="1h", store=str(tmp_path / "store"), console=False)
    yield started
    loopcanary.uninstall()


@pytest.fixture
def hooks(canary, request):
    if "native" in request.node.callspec.id:
        from loopcanary import _native

        made = _native.LoopHooks("novel")
    else:
        from loopcanary.portable.turns import CanaryTurns

        made = CanaryTurns(canary).LoopHooks("novel")
    made.run_begin()
    yield made
    made.run_end()


def figures(canary):
    loop = next(loop for loop in canary.loops() if loop.kind == "novel")
    return loop.turns, loop.callbacks


def bound(name, function):
    return type("Patched", (Reactor,), {name: function})()


def test_a_wait_lies_between_two_turns(canary, hooks):
    reactor = bound("wait", hooks.around_wait(Reactor.wait))
    for _ in range(CALLBACKS):
        assert reactor.wait(1, room=2) == (reactor, (1,), {"room": 2})
    assert figures(canary) == (CALLBACKS, 0)


def test_a_call_is_a_callback_whose_name_is_asked_for_once(canary, hooks):
    asked = []

    def name_of(*types):
        asked.append(types)
        return "named"

    reactor = bound("handle", hooks.around_work(Reactor.handle, "protocol", name_of))
    subject = Subject()
    for _ in range(CALLBACKS):
        assert reactor.handle(subject, 1, more=2) == (reactor, subject, (1,), {"more": 2})
    assert reactor.handle("no attribute")[1] == "no attribute"
    hooks.wait_begin()
    assert asked == [(Subject, float), (str, type(None))]
    assert figures(canary) == (1, CALLBACKS + 1)


def test_what_a_callback_raises_comes_through(canary, hooks):
    reactor = bound("fail", hooks.around_work(Reactor.fail, "protocol", lambda *_: "named"))
    with pytest.raises(LookupError, match="as it must"):
        reactor.fail("as it must")
    hooks.work_begin("next")
    hooks.work_end()
    hooks.wait_begin()
    assert figures(canary) == (1, 2)


def test_callbacks_end_with_the_call_that_they_began_in(canary, hooks):
    reactor = bound("run_all", hooks.around_works(Reactor.run_all))
    hooks.work_begin("outer")
    assert reactor.run_all(hooks, CALLBACKS) == "ran"
    hooks.works_end()  # not of what was begun outside
    hooks.work_end()
    hooks.work_begin("next")
    hooks.work_end()
    hooks.wait_begin()
    turns, callbacks = figures(canary)
    assert turns == 1
    assert callbacks >= 2
