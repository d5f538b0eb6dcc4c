"""What loopcanary replaces in a program is what its list says, and goes with it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from loopcanary.assembly.doctor.programs import patches_of
from loopcanary.assembly.errands import asking
from loopcanary.assembly.store import open_store, recover
from loopcanary.flight.beside.patches import BYTES_MAX, patches_in

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(sys.platform != "linux", reason="the program looks at ELF and /proc"),
]
PROGRAM = Path(__file__).with_name("watched.py")
UNSEEN = "hook pthread_atfork, for good"
"""The C library shows its handlers to nobody."""
SLEEPS = {"35", "230", "101", "115"}
"""Numbers of nanosleep and clock_nanosleep, of both architectures."""
FOR_GOOD = {
    "hook atexit, for good",
    "hook os.register_at_fork, for good",
    "hook sigaltstack of threads that have none, until they end",
    "hook threading._register_atexit, for good",
}


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}


def printed(*words: str | Path, cwd: Path | None = None) -> str:
    """What Python prints that is started with these words."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=cwd, env=clean()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def watched(store: Path, engine: str = "native") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, PROGRAM, store, engine],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean(),
        text=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def told(program: subprocess.Popen[str]) -> dict[str, Any]:
    assert program.stdout is not None
    found: dict[str, Any] = json.loads(program.stdout.readline())
    return found


def tell(program: subprocess.Popen[str], line: str) -> None:
    assert program.stdin is not None
    program.stdin.write(f"{line}\n")
    program.stdin.flush()


def listed(pid: int) -> set[str]:
    rows = patches_of(pid)
    assert not any(state == "problem" for _, state, _ in rows), rows
    return {f"{kind} {what}" for kind, state, what in rows if state == "on"}


def test_the_list_is_what_differs_from_a_plain_process(tmp_path):
    with watched(tmp_path) as program:
        differs = {*told(program)["differs"]}
        assert listed(program.pid) == differs | {UNSEEN}
        kinds = {name.partition(" ")[0] for name in differs}
        assert kinds == {"attribute", "call", "hook", "signal", "slot"}


def test_the_list_is_there_while_the_program_hangs_with_the_gil(tmp_path):
    with watched(tmp_path) as program:
        differs = {*told(program)["differs"]}
        tell(program, "hang")
        asleep = Path(f"/proc/{program.pid}/syscall")
        while asleep.read_text().split()[0] not in SLEEPS:
            os.sched_yield()
        assert listed(program.pid) == differs | {UNSEEN}


@pytest.mark.parametrize("engine", ["native", "portable"])
def test_uninstall_takes_all_back_that_can_be(tmp_path, engine):
    with watched(tmp_path, engine) as program:
        told(program)
        tell(program, "uninstall")
        last = told(program)
        assert {*last["left"]} - {UNSEEN} == {*last["differs"]}
        assert {*last["differs"]} <= FOR_GOOD


def test_what_another_tool_has_patched_over_is_left_and_listed(tmp_path):
    with watched(tmp_path) as program:
        told(program)
        tell(program, "patch over")
        last = told(program)
        over = {"attribute asyncio.locks.Lock.release", "attribute os._exit", "signal SIGTERM"}
        assert {*last["differs"]} - FOR_GOOD == over
        assert {*last["left"]} - FOR_GOOD - {UNSEEN} == {
            f"{name} (another tool has patched over it)".replace("SIGTERM", "15") for name in over
        }
        tell(program, "install again")
        told(program)
        rows = patches_of(program.pid)
        assert {f"{kind} {what}" for kind, state, what in rows if state == "left"} == {
            f"{name}: another tool has patched over it" for name in over
        }


def test_the_file_goes_with_the_flight_file_of_a_killed_program(tmp_path):
    with watched(tmp_path) as program:
        told(program)
        _, flight = asking.watched(program.pid)
        facts = Path(f"{flight}.patches").stat()
        assert (facts.st_size, stat.S_IMODE(facts.st_mode)) == (BYTES_MAX, 0o600)
    with closing(open_store(tmp_path)) as store:
        recover(store, None)
    assert not [*Path(flight).parent.glob(f"{Path(flight).name}*")]


def test_a_list_that_is_full_takes_no_more_but_is_kept_up():
    many = """
from loopcanary import _native
for number in range(1000):
    _native.note_patch(f"+attribute of.a.module.of.many.names_{number}")
assert not _native.note_patch("+attribute of.a.module.of.many.names_1000")
assert _native.note_patch("-attribute of.a.module.of.many.names_7")
assert not _native.note_patch("!attribute of.a.module.of.many.names_7")
assert _native.note_patch("+attribute of.a.module.of.many.names_7")
print(len(_native.patches()))
"""
    assert BYTES_MAX - 100 < int(printed("-c", many)) <= BYTES_MAX


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"LCPATCH1",
        b"LCPATCH2\n+attribute os.nice\n",
        b"LCPATCH1\n+attribute os.ni",
        b"LCPATCH1\n?attribute os.nice\n",
        b"LCPATCH1\n+attribute\n+\n\n",
        b"\0LCPATCH1\n+attribute os.nice\n",
        bytes(range(256)) * 100,
    ],
)
def test_bytes_that_are_no_list_have_nothing(content):
    assert patches_in(content) == []


def test_a_list_that_is_damaged_is_read_as_far_as_it_goes():
    content = b"LCPATCH1\n+attribute os.nice\n\xff\n-call \xffread in x\n!signal 15\n+slot half"
    assert patches_in(content) == [
        ("+", "attribute", "os.nice"),
        ("-", "call", "\ufffdread in x"),
        ("!", "signal", "15"),
    ]


def test_doctor_shows_what_a_program_would_have(tmp_path):
    shown = printed("-m", "loopcanary", "doctor", "--patches", cwd=tmp_path)
    assert "attribute  on       asyncio.events.Handle._run" in shown.splitlines()


def test_doctor_says_which_process_has_no_list():
    done = subprocess.run(
        [sys.executable, "-m", "loopcanary", "doctor", "--patches", str(os.getppid())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not watched" in done.stdout


def test_a_fork_leaves_the_list_of_its_parent_alone(tmp_path):
    program = """
import asyncio, os, sys
import loopcanary
from loopcanary.patches import ON, note, noted
loopcanary.install(store=sys.argv[1], keeper=False, console="off")
asyncio.run(asyncio.sleep(0))
child = os.fork()
if child == 0:
    note(ON, "attribute of.the.child")
    print("of.the.child" in noted().decode(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
from loopcanary.assembly.doctor.programs import patches_of
from loopcanary.assembly.errands import asking
from loopcanary.assembly.store import open_store, recover
from loopcanary.flight.beside.patches import BYTES_MAX, patches_in
print(any("of.the.child" in what for _, _, what in patches_of(os.getpid())))
"""
    assert printed("-c", program, tmp_path).split() == ["True", "False"]


def test_the_list_does_not_grow_with_installs(tmp_path):
    program = """
import asyncio, sys
import loopcanary
from loopcanary.patches import noted
sizes = set()
for _ in range(5):
    loopcanary.install(store=sys.argv[1], keeper=False, console="off", locks=True)
    asyncio.run(asyncio.sleep(0))
    loopcanary.uninstall()
    sizes.add(len(noted()))
print(*sizes)
"""
    assert len(printed("-c", program, tmp_path).split()) == 1


def test_what_was_hooked_before_the_engine_came_is_listed(tmp_path):
    """A child waits for the import of a loop's library, and is watched from then on."""
    child = """
import asyncio, os
asyncio.run(asyncio.sleep(0))
from loopcanary.assembly.doctor.programs import patches_of
print(*(what for kind, state, what in patches_of(os.getpid()) if state == "on"), sep="\\n")
"""
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    shown = printed("-m", "loopcanary", "run", "--quiet", "--store", tmp_path, "-c", parent)
    assert {"sys.meta_path", "asyncio.events.Handle._run"} <= {*shown.splitlines()}


def test_doctor_says_that_a_list_has_no_more_room(tmp_path):
    with watched(tmp_path) as program:
        told(program)
        _, flight = asking.watched(program.pid)
        full = b"LCPATCH1\n" + b"+attribute of.a.module.name\n" * 600
        Path(f"{flight}.patches").write_bytes(full[:BYTES_MAX])
        assert patches_of(program.pid) == [
            ("attribute", "on", "of.a.module.name"),
            ("patches", "off", "there may be more: the list is full"),
        ]
