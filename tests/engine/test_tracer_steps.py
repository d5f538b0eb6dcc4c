"""Tracers that are started and stopped by their program while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from loopcanary.assembly.doctor.programs import program_facts

from .watching import GIVES_UP_S, PATIENT_PLUGINS, Place

OWN = (
    PATIENT_PLUGINS
    + """\
import asyncio, json, os, sys
import loopcanary
from loopcanary.registry import REGISTRY, TRACERS

class Own:
    name = "own"

    def init(self, desk):
        self.desk = desk

    def start(self):
        print("own starts", flush=True)

    def stop(self):
        print("own stops", flush=True)

class Broken(Own):
    def start(self):
        raise OSError("no room")

def states():
    return {one.name: one.state.value for one in loopcanary.list_tracers()}

REGISTRY.add(TRACERS, "own", Own)
"""
)
LISTENED = """
@loopcanary.on_tracer
def wrong(name, state):
    raise ValueError("a listener")

@loopcanary.on_tracer
def heard(name, state):
    print(name, state.value)

canary = loopcanary.install(locks=True)
print(loopcanary.stop_tracers("own"))
print(loopcanary.stop_tracers("own", "nobody"))
print(loopcanary.stop_tracers(), states())
print(loopcanary.start_tracers(), states())
loopcanary.uninstall()
print(loopcanary.list_tracers(), loopcanary.start_tracers("own"))
"""


def test_a_program_stops_and_starts_tracers_and_hears_of_it(place: Place):
    done = place.run(place.program(LISTENED, prelude=OWN), LOOPCANARY="")
    assert done.stdout.splitlines() == [
        *("own inited", "own starts", "own started", "locks inited", "locks started"),
        *("own stops", "own stopped", "{}"),
        "{'own': 'it is not started', 'nobody': 'there is no such tracer here, but own, locks'}",
        *("locks stopped", "{} {'own': 'stopped', 'locks': 'stopped'}"),
        *("own starts", "own started", "locks started", "{} {'own': 'started', 'locks': 'started'}"),
        *("locks stopped", "own stops", "own stopped", "locks destroyed", "own destroyed"),
        "() {'own': 'nothing is watched'}",
    ]
    assert "tracer listener 1 (wrong) failed and is switched off: ValueError: a listener" in done.stderr


BROKEN = """
REGISTRY.add(TRACERS, "broken", Broken)
loopcanary.install()
for one in loopcanary.list_tracers():
    print(one.name, one.state.value, one.failed)
print(loopcanary.start_tracers("broken"))
"""


def test_one_that_failed_is_not_started_again(place: Place):
    done = place.run(place.program(BROKEN, prelude=OWN), LOOPCANARY="")
    assert done.stdout.splitlines()[:5] == [
        *("own starts", "own stops", "own started None", "broken stopped OSError: no room"),
        "{'broken': 'it has failed, and is switched off'}",
    ]
    assert done.stderr.count("tracer broken failed") == 1


FORKED = """
canary = loopcanary.install()
loopcanary.stop_tracers("own")
child = os.fork()
if child == 0:
    with loopcanary.watch("job"):
        print("child", states(), loopcanary.start_tracers("own"), flush=True)
    loopcanary.uninstall()
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_keeps_stopped_what_was_stopped(place: Place):
    done = place.run(place.program(FORKED, prelude=OWN), LOOPCANARY="")
    before, _, inside = done.stdout.partition("child {'own': 'inited'} {}")
    assert before.splitlines() == ["own starts", "own stops", "own starts"]
    assert inside.splitlines() == ["", "own stops"]


CALLS = """
def work():
    return sum(range(9))

def known():
    work()
    return loopcanary.statistics().get("methods_known", 0)

loopcanary.install(methods=["."])
found = [known()]
loopcanary.stop_tracers("methods")
found.append(known())
print(loopcanary.start_tracers("methods"))
found.append(known())
print(*(count > 0 for count in found), states()["methods"])
"""


@pytest.mark.native
def test_calls_are_traced_again_after_a_stop(place: Place):
    done = place.run(place.program(CALLS, prelude=OWN), LOOPCANARY="")
    assert "{}\nTrue False True started\n" in done.stdout


SERVES = """
REGISTRY.add(TRACERS, "broken", Broken)
loopcanary.install(locks=True, methods=["."], name="shop")

def work():
    return sum(range(9))

async def serve():
    loopcanary.stop_tracers("locks", "methods")
    print("ready", flush=True)
    while True:
        work()
        await asyncio.sleep(0.01)

asyncio.run(serve())
"""
Ask = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def asked(place: Place) -> Iterator[Ask]:
    """What asks a program that serves."""
    program = place.start(
        place.program(SERVES, prelude=OWN),
        env=place.environment(LOOPCANARY="", LOOPCANARY_CONSOLE="off"),
        stdout=subprocess.PIPE,
    )
    assert program.stdout is not None
    while program.stdout.readline() != b"ready\n":
        assert program.poll() is None

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "loopcanary", *(word.format(pid=program.pid) for word in words))
        return subprocess.run(
            command,
            env=place.environment(LOOPCANARY="0"),
            cwd=place.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=GIVES_UP_S,
        )

    yield ask


@pytest.mark.native
def test_the_doctor_says_what_each_tracer_does(place: Place):
    with asked(place):
        rows = [row[1:] for row in program_facts(place.store) if row[0] == "tracers"]
        assert {
            (row.partition(" of shop ")[0], status, row.partition(": ")[2].partition(";")[0])
            for status, row in rows
        } == {
            ("broken", "problem", "stopped, it failed: OSError: no room"),
            ("own", "ok", "started"),
            ("locks", "off", "stopped"),
            ("methods", "off", "stopped"),
        }


@pytest.mark.native
def test_calls_are_traced_for_a_command_where_their_tracer_is_stopped(place: Place):
    with asked(place) as ask:
        done = ask("methods", "{pid}", "--for", "5s", "--format", "json")
        assert {thread["thread"] for thread in json.loads(done.stdout)["threads"]} == {"MainThread"}
