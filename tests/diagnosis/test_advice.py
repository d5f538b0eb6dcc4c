"""Remedies by call, by module and by cause; and which stalls are reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.diagnosis.cases import (
    APP,
    ASYNC,
    PATHS,
    PLAIN,
    SITE,
    advised,
    at,
    evidence,
    frame,
    judged,
    samples,
    stack,
)

from loopcanary.diagnosis.judgement import drop_reason
from loopcanary.model import Blocker, Cause, Config


@pytest.mark.parametrize(
    ("call", "cause", "names"),
    [
        ("sleep(0.3)", Cause.SLEEP, "asyncio.sleep"),
        ("self.clock.sleep(1)", Cause.SLEEP, "asyncio.sleep"),
        ("my_queue.get()", Cause.LOCK, "asyncio.Queue"),
        ("future.result()", Cause.LOCK, "asyncio.wrap_future"),
        ("whatever()", Cause.CPU, "process pool"),
    ],
)
def test_a_call_leads_to_its_remedy_whoever_receives_it(call, cause, names):
    assert names in advised(cause, Blocker(call=call, function=None), (), "asyncio")


@pytest.mark.parametrize(
    ("modules", "names"),
    [
        (("requests.api", "requests.sessions", "urllib3.connectionpool"), "httpx.AsyncClient"),
        (("redis.client",), "redis.asyncio"),
        (("sqlalchemy.orm.query", "psycopg2.extras"), "AsyncSession"),
    ],
)
def test_the_modules_below_the_culprit_lead_to_a_remedy(modules, names):
    assert names in advised(Cause.NETWORK_IO, Blocker(call="self.load()", function="x"), modules, "uvloop")


def test_a_name_does_not_fit_in_the_middle_of_a_word():
    assert "AsyncClient` (its API" not in advised(
        Cause.NETWORK_IO, Blocker(call="requestsx.get(1)", function=None), ("requestsy.core",), "asyncio"
    )


WITHOUT_A_CALL = {
    Cause.CPU: "`await asyncio.sleep(0)` between the pieces",
    Cause.NATIVE_CPU: "if it releases the GIL",
    Cause.GIL: "the work of the thread that holds it",
    Cause.SLEEP: "`await asyncio.sleep(...)`",
    Cause.LOCK: "an asyncio primitive",
    Cause.DISK_IO: "aiofiles",
    Cause.NETWORK_IO: "an async client",
    Cause.DNS: "`await loop.getaddrinfo(...)`",
    Cause.SUBPROCESS: "`await asyncio.create_subprocess_exec(...)`",
    Cause.GC: "`gc.freeze()`",
    Cause.IMPORT: "when the program starts",
    Cause.BURST: "in batches",
    Cause.HOST: "not at fault",
    Cause.CRASH: "its stack in the core",
}


@pytest.mark.parametrize(("cause", "says"), WITHOUT_A_CALL.items())
def test_a_cause_without_a_call_has_a_remedy(cause, says):
    assert says in advised(cause, None, (), "asyncio")


def test_every_cause_but_unknown_has_a_remedy():
    assert set(Cause) - set(WITHOUT_A_CALL) == {Cause.UNKNOWN}
    assert advised(Cause.UNKNOWN, None, (), "asyncio") is None


@pytest.mark.parametrize("cause", [Cause.SLEEP, Cause.NETWORK_IO, Cause.LOCK, Cause.CPU, Cause.DNS])
def test_advice_for_other_loops_leaves_asyncio_out(cause):
    assert "asyncio" not in advised(
        cause, Blocker(call="requests.get(u)", function=None), ("requests",), "qt"
    )


def test_the_cause_overrides_the_call_where_the_call_is_chance():
    assert "gc.freeze" in advised(Cause.GC, Blocker(call="time.sleep(1)", function=None), (), "asyncio")


OWN = judged(evidence(samples(stack(frame("Api.handler", APP, 3)), syscall="poll")))
FOREIGN = judged(
    evidence(
        samples(stack(frame("consume", "/srv/venv/lib/python3.11/site-packages/kafka/c.py")), syscall="poll")
    )
)


@pytest.mark.parametrize(
    "entry", ["app", "app:Api.handler", "app:handler", "*/app.py", "app.py", "/srv/*", "/srv/app/app.py"]
)
def test_ignored_by(entry):
    assert drop_reason(OWN, Config(ignore=("other", entry)), PATHS) == f"ignore: {entry}"


@pytest.mark.parametrize("entry", ["ap", "app:other", "app.handler", "*/other.py", "/app.py", "pp.py"])
def test_not_ignored_by(entry):
    assert drop_reason(OWN, Config(ignore=(entry,)), PATHS) is None


def test_only_stalls_with_own_code_where_asked_for():
    config = Config(only_concern=True)
    assert drop_reason(OWN, config, PATHS) is None
    assert drop_reason(FOREIGN, config, PATHS) == "only_concern"
    assert drop_reason(judged(evidence()), config, PATHS) == "only_concern"
    assert drop_reason(FOREIGN, Config(ignore=("kafka",)), PATHS) == "ignore: kafka"


def test_an_aiohttp_application_is_advised_its_own_client():
    call = Blocker(call="requests.get(url)", function=None)
    assert "httpx" in advised(Cause.NETWORK_IO, call, (), "asyncio")
    assert "aiohttp.ClientSession" in advised(
        Cause.NETWORK_IO, call, (), "asyncio", within=frozenset({"aiohttp"})
    )


def test_that_it_is_one_is_read_off_the_stacks():
    text = "def handler():\n    requests.get(url)\n"
    handler = at("requests.get(url)", text)
    serving = frame("Application._handle", f"{SITE}/aiohttp/web_app.py", 563)
    for outer, says in (((serving,), "aiohttp.ClientSession"), ((), "httpx")):
        taken = samples(*[stack(handler, *outer)] * 12, syscall="recvfrom")
        stall = judged(evidence(taken), text)
        assert says in (stall.advice or ""), stall


ASKED = frame("run_endpoint_function", f"{SITE}/fastapi/routing.py", 301)
PAGE = frame("decorated", f"{SITE}/nicegui/page.py", 120, code_flags=ASYNC)


@pytest.mark.parametrize(
    ("call", "outer", "is_said"),
    [
        ("requests.get(url)", (ASKED,), True),
        ("requests.post(url)", (PAGE, ASKED), False),  # it is a plain function already
        ("requests.post(url)", (ASKED,), False),
        ("requests.get(url)", (frame("lifespan", f"{SITE}/fastapi/routing.py", 20),), False),
    ],
)
def test_an_endpoint_is_what_the_framework_calls_so(call, outer, is_said):
    text = "async def handler():\n    requests.get(url)\ndef plain():\n    requests.post(url)\n"
    flags = ASYNC if "get" in call else PLAIN
    taken = samples(*[stack(replace(at(call, text), code_flags=flags), *outer)] * 12, syscall="recvfrom")
    assert ("a plain `def`" in judged(evidence(taken), text).advice) is is_said


@pytest.mark.parametrize(
    ("within", "says"),
    [("fastapi", "FastAPI runs it on a thread"), ("starlette", "Starlette runs it on a thread")],
)
def test_an_endpoint_that_awaits_nothing_may_be_a_plain_function(within, says):
    call = Blocker(call="requests.get(url)", function=None)
    packages = frozenset({within, "uvicorn"})
    known = {"within": packages, "endpoint": within}
    assert says in advised(Cause.NETWORK_IO, call, (), "uvloop", **known)
    assert says in advised(Cause.NETWORK_IO, None, (), "asyncio", **known)
    # A thread is no help for what holds the GIL, nor a word of another loop's.
    assert says not in advised(Cause.CPU, None, (), "asyncio", **known)
    assert says not in advised(Cause.NETWORK_IO, call, (), "trio", **known)
    assert says not in advised(Cause.NETWORK_IO, call, (), "asyncio", within=packages)
    assert "a plain `def`" not in advised(Cause.NETWORK_IO, call, (), "asyncio")


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.UNKNOWN])
def test_advice_for_games_speaks_of_frames(cause):
    words = advised(cause, None, (), "pygame")
    assert words
    assert "asyncio" not in words
    if cause not in {Cause.HOST, Cause.BURST}:
        assert "loop" not in words
