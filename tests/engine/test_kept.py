"""Programs whose stalls a keeper takes: no thread, no verdict and no store of ours in them."""

from __future__ import annotations

import fcntl
import platform
import shutil
import subprocess
import time
import venv
from pathlib import Path

import pytest

import loopcanary
from loopcanary import keeper
from loopcanary.assembly.doctor.programs import program_facts
from loopcanary.model import Cause, SessionEnd
from loopcanary.model.config import FAILED_ON_STALL

from .watching import GIVES_UP_S, PATIENT_END, PRELUDE, Place, refusing

REPORTS = """
    import loopcanary
    if "--hear" in sys.argv:
        loopcanary.on_issue(lambda issue: print("heard", name_of(issue), flush=True) or issue)
    stall("walk")
    canary = loopcanary.install()
    print(type(canary._engine).__name__, threading.active_count(), flush=True)
"""


def test_a_keeper_stores_what_stalled(place: Place):
    done = place.run(place.program(REPORTS), LOOPCANARY_KEEPER="1")
    assert done.stdout.splitlines() == ["KeptEngine 1"]
    assert place.culprits() == ["walk"]


def test_own_code_has_the_program_judge_from_now_on(place: Place):
    program = """
    import loopcanary
    canary = loopcanary.install()
    asyncio.run(asyncio.sleep(0))
    print(type(canary._engine).__name__, "loopcanary.engine.running" in sys.modules, flush=True)
    heard = threading.Event()

    def hear(issue):
        # On a busy machine it may be a hang, which is heard of before its end, too.
        if issue.culprit and issue.culprit.file.startswith("stalls/") and issue.state.value == "ended":
            print("heard", issue.culprit.function, type(canary._engine).__name__, flush=True)
            heard.set()
        return issue

    loopcanary.on_issue(hear)
    print(type(canary._engine).__name__, flush=True)
    stall("walk")
    heard.wait()
    heard.clear()
    stall("again")
    heard.wait()
    """
    done = place.run(place.program(program), LOOPCANARY_KEEPER="1")
    assert done.stdout.splitlines() == [
        "KeptEngine False",
        "RunningEngine",
        "heard walk RunningEngine",
        "heard again RunningEngine",
    ]
    assert place.culprits() == ["again", "walk"]


def test_own_code_hears_a_program_that_ends_at_once(place: Place):
    done = place.run(place.program(REPORTS), "--hear", LOOPCANARY_KEEPER="1")
    assert "heard walk" in done.stdout.splitlines()
    assert place.culprits() == ["walk"]


def test_the_stalls_and_figures_of_this_process_can_be_read(place: Place):
    program = """
    import loopcanary
    stall("walk")
    canary = loopcanary.install()
    (found,) = [stall for stall in canary.stalls if name_of(stall) == "walk"]
    (loop,) = canary.loops()
    told = loopcanary.statistics()
    print(found.culprit.function, found.id.startswith(canary.session.id))
    print(loop.turns > 0, told["samples_taken"] > 0)
    """
    done = place.run(place.program(program), LOOPCANARY_KEEPER="1")
    assert done.stdout.split() == ["walk", "True", "True", "True"]


def test_on_issue_hears_what_no_keeper_has_taken(place: Place):
    program = """
    import loopcanary
    stall("before")
    canary = loopcanary.install()
    while not any(canary.stalls):
        time.sleep(0.01)  # it is about to say who it is
    heard = threading.Event()

    def hear(issue):
        print(name_of(issue), flush=True)
        if name_of(issue) == "after":  # a busy machine may have others
            heard.set()
        return issue

    loopcanary.on_issue(hear)
    stall("after")
    heard.wait()
    """
    done = place.run(place.program(program), LOOPCANARY_KEEPER="1")
    assert "after" in done.stdout.split()
    assert place.culprits() == ["after", "before"]


def test_a_forked_child_leaves_its_stalls_to_the_keeper_too(place: Place):
    program = """
    stall("parent")
    child = os.fork()
    if child == 0:
        stall("child")
        os._exit(0)
    os.waitpid(child, 0)
    stall("parent_again")
    """
    place.run(place.program(program), LOOPCANARY_KEEPER="1")
    assert place.culprits() == ["child", "parent", "parent_again"]


_UNTIL_TAKEN_OVER = """
    import loopcanary
    canary = loopcanary.install()
    while type(canary._engine).__name__ != "RunningEngine":
        time.sleep(0.01)
"""
_EXECVE = {"x86_64": 59, "aarch64": 221}.get(platform.machine(), 0)
REFUSALS = {
    "no interpreter": '    sys.executable = "/nowhere/python3"\n',
    "no exec": refusing(_EXECVE),
    "no bell": """
    from loopcanary import keeper as place
    os.makedirs(os.environ["LOOPCANARY_STORE"] + "/keeper")
    open(place.bell_path(os.environ["LOOPCANARY_STORE"]), "x").close()
    """,
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_where_no_keeper_can_be_started_the_program_takes_over(place: Place, refusal: str):
    program = place.program(refusal + "\n    stall('walk')\n" + _UNTIL_TAKEN_OVER + "\n    stall('run')\n")
    done = place.run(program, LOOPCANARY_KEEPER="1", LOOPCANARY_CONSOLE="1")
    if done.stdout == "no seccomp\n":
        pytest.skip("no seccomp here")
    assert [name for name in ("walk", "run") if f" in {name}\n" in done.stderr] == ["walk", "run"], (
        done.stderr
    )
    assert "loopcanary: " not in done.stderr
    assert place.culprits() == ["run", "walk"]
    assert place.left_behind() == []
    Path(keeper.bell_path(str(place.store))).unlink(missing_ok=True)  # that of "no bell"


@pytest.mark.parametrize("stays", ["", "keeper"], ids=["all of it", "flight files and database"])
def test_what_stalls_after_the_store_was_removed_is_stored(place: Place, stays: str):
    program = f"""
    import shutil
    stall("walk")
    store = os.environ["LOOPCANARY_STORE"]
    for name in os.listdir(store):
        if name == "flight":
            aside = store + "-flight"  # at once: the keeper may be at work in it
            os.rename(os.path.join(store, name), aside)
            shutil.rmtree(aside)
        elif name != {stays!r}:
            shutil.rmtree(os.path.join(store, name), ignore_errors=True)
            if os.path.isfile(os.path.join(store, name)):
                os.unlink(os.path.join(store, name))
    stall("run")
    """
    done = place.run(place.program(program), LOOPCANARY_KEEPER="1")
    assert "failed" not in done.stderr
    assert "run" in place.culprits()
    assert place.left_behind() == []
    [session] = place.sessions().values()
    assert not list(Path("/dev/shm").glob(f"*{session.id}*"))


def environment_of_its_own(folder: Path) -> Path:
    """Its interpreter, with loopcanary and nothing else."""
    venv.create(folder, symlinks=True)
    ours = Path(loopcanary.__file__).parent
    [packages] = folder.glob("lib/python*/site-packages")
    shutil.copytree(ours, packages / "loopcanary", ignore=shutil.ignore_patterns("__pycache__"))
    for start in ours.parent.glob("loopcanary_auto.*"):
        shutil.copy(start, packages)
    return folder / "bin" / "python"


def test_where_the_environment_was_removed_that_is_said(place: Place):
    python = environment_of_its_own(place.folder / "venv")
    program = place.program(
        """
    import shutil
    asyncio.run(asyncio.sleep(0))
    shutil.rmtree("venv")
    stall("walk", 4.2)
    """
    )
    # What the host may make of the loop before would start a keeper too early.
    settings = {"LOOPCANARY_FAIL_ON_STALL": "1", "LOOPCANARY_CONSOLE": "1", "LOOPCANARY_THRESHOLD": "4s"}
    done = subprocess.run(
        [python, program],
        env=place.environment(LOOPCANARY_KEEPER="1", **settings),
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=GIVES_UP_S,
    )
    assert done.returncode == FAILED_ON_STALL, done.stderr
    assert (
        "loopcanary: judging failed; stalls are not shown; with the native engine the next report stores them"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert place.culprits() == ["walk"]
    assert place.left_behind() == []


def test_an_end_stores_what_a_killed_keeper_has_left(place: Place):
    program = """
    import json, pathlib, signal
    stall("walk")
    folder = pathlib.Path(os.environ["LOOPCANARY_STORE"], "keeper")
    while not (found := [*folder.glob("*.json")]):
        time.sleep(0.01)
    os.kill(json.loads(found[0].read_text())["pid"], signal.SIGKILL)
    """
    done = place.run(
        place.program(program), status=FAILED_ON_STALL, LOOPCANARY_KEEPER="1", LOOPCANARY_FAIL_ON_STALL="1"
    )
    assert "failed" not in done.stderr
    assert place.left_behind() == [], "the program has stored it"
    assert place.culprits() == ["walk"]


def test_doctor_says_which_programs_judge_and_why(place: Place):
    own = """
    import loopcanary
    loopcanary.on_issue(lambda issue: issue)
    """
    waits = """
    print("ready", flush=True)
    sys.stdin.read()
    """
    begins = {
        "alone.py": REFUSALS["no interpreter"] + "    stall('walk')\n" + _UNTIL_TAKEN_OVER,
        "own.py": own + "\n    asyncio.run(asyncio.sleep(0))\n",
        "kept.py": "\n    asyncio.run(asyncio.sleep(0))\n",
    }
    programs = {
        name: place.start(
            place.program(begin + waits, name),
            env=place.environment(LOOPCANARY_KEEPER="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name, begin in begins.items()
    }
    for program in programs.values():
        assert program.stdout.readline() == b"ready\n"
    gives_up = time.monotonic() + GIVES_UP_S  # the engine that takes over says so a moment later
    while len(said := sorted(program_facts(place.store))) < 2 and time.monotonic() < gives_up:
        time.sleep(0.05)
    for program in programs.values():
        program.communicate()
    alone, own = (f"{name} (pid {programs[name].pid})" for name in ("alone.py", "own.py"))
    assert said == [
        (
            "program",
            "off",
            f"{alone} diagnoses its own stalls: no keeper can be started: No such file or directory",
        ),
        ("program", "off", f"{own} diagnoses its own stalls: on_issue of the program sees them"),
    ]


def test_a_program_that_ends_at_once_stores_what_no_keeper_takes(place: Place):
    program = place.program(REFUSALS["no interpreter"] + "    stall('walk')")
    done = place.run(program, LOOPCANARY_KEEPER="1", LOOPCANARY_CONSOLE="1")
    assert " in walk\n" in done.stderr
    assert place.culprits() == ["walk"]
    assert place.left_behind() == []


CLEAN = "asyncio.run(asyncio.sleep(0))"
NO_STALL = {"LOOPCANARY_KEEPER": "1", "LOOPCANARY_THRESHOLD": "1h"}
"""Whatever the host makes of it."""


def test_a_clean_program_gives_its_memory_back(place: Place):
    place.run(place.program(CLEAN), **NO_STALL)
    [name] = place.left_behind()
    left = place.store / "flight" / name
    assert left.is_file()
    assert not left.is_symlink()
    assert not list(Path("/dev/shm").glob(f"*{name}*"))
    assert not list((place.store / "keeper").glob("*.bell")), "no keeper was started for it"
    [session] = place.sessions().values()
    assert session.end is SessionEnd.EXIT
    assert session.loops
    assert place.left_behind() == []


@pytest.mark.parametrize("ends", [False, True], ids=["stays", "container ends"])
def test_what_no_keeper_took_in_time_lies_on_the_disk(place: Place, ends: bool):
    keeper.prepare(str(place.store))
    with Path(keeper.path(str(place.store), keeper.LOCK)).open("w") as seat:
        fcntl.lockf(seat, fcntl.LOCK_EX)  # those that are started find it taken, and end
        place.run(place.program("stall('walk')"), LOOPCANARY_KEEPER="1")
        folder = place.store / "flight"
        [link] = [folder / name for name in place.left_behind() if name.endswith(".flight")]
        assert link.with_suffix(".saved").read_bytes() == link.read_bytes()
        if ends:
            link.resolve().unlink()  # with its memory
    assert [session.end for session in place.sessions().values()] == [SessionEnd.EXIT]
    assert place.culprits() == ["walk"]
    assert place.left_behind() == []


def test_a_start_beside_many_leavings_starts_a_keeper(place: Place):
    program = place.program(CLEAN)
    place.run(program, **NO_STALL)
    [name] = place.left_behind()
    for number in range(16):
        shutil.copy(place.store / "flight" / name, place.store / "flight" / f"{number}{name}")
    gives_up = time.monotonic() + GIVES_UP_S
    place.run(program, **NO_STALL)
    while place.left_behind() and time.monotonic() < gives_up:
        time.sleep(0.05)
    assert place.left_behind() == []


def test_latency_of_requests_is_kept(place: Place):
    program = """
    import loopcanary, socket

    async def answer(reader, writer):
        while await reader.readuntil(b"\\r\\n\\r\\n"):
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")

    def ask(port):
        with socket.create_connection(("127.0.0.1", port)) as client:
            for _ in range(64):
                client.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
                client.recv(100)

    async def main():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            await asyncio.to_thread(ask, server.sockets[0].getsockname()[1])

    asyncio.run(main())
    """
    place.run(place.program(program), LOOPCANARY_KEEPER="1")
    [session] = place.sessions().values()
    [figures] = session.traces.input
    assert figures.loop == "requests"
    assert figures.events >= 1


def test_a_keeper_that_is_too_late_for_its_word_is_no_failure(place: Place):
    program = """
    import os
    import loopcanary
    canary = loopcanary.install(console=True)
    stall("walk")
    recorder = canary.kept.backend

    class Late:
        def __init__(self, native):
            self.native = native

        def __getattr__(self, name):
            return getattr(self.native, name)

        def end_with_keeper(self, patience_s):
            while not self.native.end_with_keeper(10):
                pass
            return False

    recorder.native = Late(recorder.native)
    """
    done = place.run(place.program(program), LOOPCANARY_KEEPER="1")
    assert "failed" not in done.stderr
    assert place.culprits() == ["walk"]


@pytest.mark.parametrize("keeper", ["0", "1"])
def test_a_program_at_a_breakpoint_is_not_stalled(place: Place, keeper: str):
    program = """
    import pdb

    class Thoughtful:
        def readline(self):
            before = samples()
            time.sleep(1.3)
            while samples() < before + 3:
                time.sleep(0.1)
            return "continue\\n"

    async def main():
        await asyncio.sleep(0)
        pdb.Pdb(stdin=Thoughtful(), stdout=open(os.devnull, "w"), nosigint=True).set_trace()
        await asyncio.sleep(0)

    asyncio.run(main())
    """
    done = place.run(
        place.program(program, prelude=PRELUDE + PATIENT_END),
        LOOPCANARY_KEEPER=keeper,
        LOOPCANARY_CONSOLE="1",
    )
    found = [one for one in place.stalls() if one.cause is not Cause.HOST and one.culprit]
    assert not [one for one in found if one.culprit.function in ("main", "readline")]
    assert " in readline" not in done.stderr
    [session] = place.sessions().values()
    assert session.statistics["stalls_suppressed_debugger"] >= 1


CELL = """
import linecache, loopcanary
sys.path.insert(0, os.getcwd())
import IPython

def run_cell(text, name="/tmp/ipykernel_1/2.py"):  # as IPython compiles one
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), {"time": time, "asyncio": asyncio, "samples": samples})

loopcanary.install()
run_cell('''
async def main():
    await asyncio.sleep(0)
    enough = samples() + 3
    while samples() < enough:
        time.sleep(0.2)

asyncio.run(main())
''')
"""


def test_cells_of_ipython_are_judged_where_their_source_is(place: Place):
    (place.folder / "IPython.py").write_text("")
    place.run(place.program(CELL), LOOPCANARY_KEEPER="1")
    found = {stall.culprit for stall in place.stalls() if stall.cause is not Cause.HOST}
    [culprit] = [one for one in found if one is not None and one.file == "/tmp/ipykernel_1/2.py"]
    assert culprit.source == "time.sleep(0.2)"
