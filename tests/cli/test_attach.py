"""`loopcanary attach`: programs that run already, watched from then on, and left as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.program.watching import is_by_the_host

from loopcanary.assembly.dump import look_at
from loopcanary.model.outside import ProcessSight
from loopcanary.outside import Interpreter, OutsideError, Process
from loopcanary.outside.mailbox import Mailbox
from loopcanary.outside.memory import MappedFile
from loopcanary.outside.remote import script, send

from . import targets

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(sys.platform != "linux", reason="other processes are reached by /proc"),
]
needs_remote_exec = pytest.mark.skipif(
    not hasattr(sys, "remote_exec"), reason="sys.remote_exec came with CPython 3.14"
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A loop that waits for its standard input and for nothing else. Each line is an order.
ON_ORDER = """
def block():
    time.sleep(0.3)
def on_line():
    order = sys.stdin.readline().strip()
    if order == "block":
        block()
    if order == "end":
        over.get_loop().remove_reader(sys.stdin)
        over.set_result(None)
    print("done", flush=True)
async def main():
    global over
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.add_reader(sys.stdin, on_line)
    ready()
    await over
asyncio.run(main())
"""

WAITS_FOR_LINE = """
lock = threading.Lock()
def let_go():
    sys.stdin.readline()
    lock.release()
lock.acquire()
threading.Thread(target=let_go).start()
ready()
lock.acquire()
print("done", flush=True)
sys.stdin.readline()
"""


def order(program: subprocess.Popen[str], text: str) -> None:
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(text + "\n")
    program.stdin.flush()
    assert program.stdout.readline() == "done\n"


def ends_well(program: subprocess.Popen[str]) -> None:
    """The program ends as it should, and nothing of ours was said in it."""
    order(program, "end")
    out, err = program.communicate(timeout=targets.PATIENCE_S)
    assert (program.returncode, out, err) == (0, "", "")


def in_call(pid: int, call: str) -> bool | None:
    sight = look_at(pid)
    assert isinstance(sight, ProcessSight), sight
    [main] = [thread for thread in sight.threads if thread.is_main]
    return True if main.syscall == call else None


def stalls(loopcanary: Run, store: Path) -> list[str]:
    """Functions of the stalls in the store that were sampled, but for those that a busy host made."""
    ran = loopcanary("report", "--store", str(store), "--format", "json")
    found = json.loads(ran.stdout)["stalls"] if ran.stdout else []
    return [stall["culprit"]["function"] for stall in found if stall["culprit"] and not is_by_the_host(stall)]


def attach(loopcanary: Run, *words: str) -> subprocess.CompletedProcess[str]:
    """With patience: a program that computes keeps the GIL 5 ms at a time, and hosts may be busy."""
    return loopcanary("attach", "--timeout", "4m", *words)


def leftovers(program: subprocess.Popen[str]) -> list[Path]:
    return list(Path("/tmp").glob(f"loopcanary-attach-{program.pid}-*"))


# ---- the whole way ------------------------------------------------------------------------------------


@needs_remote_exec
def test_a_waiting_loop_is_watched_until_the_stop(tmp_path: Path, loopcanary: Run):
    store = tmp_path / "store"
    with targets.running(ON_ORDER, tmp_path) as program:
        targets.until(lambda: in_call(program.pid, "epoll_wait"))
        order(program, "block")  # nobody sees that
        attached = attach(loopcanary, "--store", str(store), str(program.pid))
        assert attached.returncode == 0, attached.stderr
        assert attached.stderr.startswith(f"process {program.pid} is watched now (native engine)\n")
        assert attached.stderr.endswith(f"loopcanary report --store {store}\n")

        def blocks() -> set[str] | None:
            """Where a busy machine took no sample of one, there is another."""
            order(program, "block")
            return set(stalls(loopcanary, store)) or None

        assert targets.until(blocks) == {"block"}
        again = attach(loopcanary, str(program.pid))
        assert (again.returncode, "is already watched" in again.stderr) == (0, True)
        stopped = attach(loopcanary, "--stop", str(program.pid))
        assert stopped.returncode == 0, stopped.stderr
        # A thread that was joined is on its way out of the kernel's list.
        targets.until(lambda: len(list(Path(f"/proc/{program.pid}/task").iterdir())) == 1 or None)
        seen = stalls(loopcanary, store)
        order(program, "block")  # nor that
        ends_well(program)
    assert stalls(loopcanary, store) == seen
    assert set(seen) == {"block"}
    assert leftovers(program) == []


def test_another_versions_program_uses_its_interpreter(tmp_path: Path, loopcanary: Run):
    code = "import sys; sys.exit(not hasattr(sys, 'remote_exec'))"
    others = targets.other_pythons()
    can = [one for one in others if subprocess.run([one, "-c", code], check=False).returncode == 0]
    if not can:
        pytest.skip("no other interpreter here that can be reached")
    python = can[0]
    with targets.running(ON_ORDER, tmp_path, python=python) as program:
        targets.until(lambda: in_call(program.pid, "epoll_wait"))
        attached = attach(loopcanary, "--store", str(tmp_path / "store"), str(program.pid))
        assert attached.returncode == 0, attached.stderr
        assert attached.stderr.startswith(f"process {program.pid} is watched now")
        order(program, "block")
        stopped = attach(loopcanary, "--stop", str(program.pid))
        assert stopped.returncode == 0, stopped.stderr
        ends_well(program)


@needs_remote_exec
def test_a_program_that_computes_is_watched(tmp_path: Path, loopcanary: Run):
    with targets.running(targets.MOVING, tmp_path) as program:
        ran = attach(loopcanary, "--store", str(tmp_path / "store"), str(program.pid))
        assert ran.returncode == 0, ran.stderr
        assert program.poll() is None


@needs_remote_exec
def test_a_program_in_a_lock_is_recognised(tmp_path: Path, loopcanary: Run):
    with targets.running(WAITS_FOR_LINE, tmp_path) as program:
        targets.until(lambda: in_call(program.pid, "futex"))
        ran = loopcanary("attach", "--timeout", "500ms", str(program.pid))
        assert ran.returncode == 1
        assert ran.stderr.startswith(f"loopcanary: process {program.pid} did not respond within 0.5 s")
        assert f"main thread {program.pid} waits for a lock" in ran.stderr
        assert f"`loopcanary dump {program.pid}`" in ran.stderr
        # What was left behind does nothing but clear itself away, once the program runs on.
        [left] = leftovers(program)
        order(program, "")
        targets.until(lambda: None if left.exists() else True)
        assert loopcanary("attach", "--stop", str(program.pid)).returncode == 1  # not watched
        program.stdin.close()  # type: ignore[union-attr]
        assert program.wait(targets.PATIENCE_S) == 0
        assert program.stderr.read() == ""  # type: ignore[union-attr]


@needs_remote_exec
def test_a_program_that_lets_no_script_in(tmp_path: Path, loopcanary: Run):
    with targets.running(targets.IDLE_LOOP, tmp_path, "-X", "disable-remote-debug") as program:
        ran = attach(loopcanary, str(program.pid))
    assert ran.returncode == 2
    assert "accepts no scripts" in ran.stderr
    assert leftovers(program) == []


@needs_remote_exec
def test_a_program_that_is_not_to_be_watched(tmp_path: Path, loopcanary: Run):
    with targets.running(ON_ORDER, tmp_path, LOOPCANARY="0") as program:
        targets.until(lambda: in_call(program.pid, "epoll_wait"))
        ran = attach(loopcanary, str(program.pid))
        assert ran.returncode == 2
        assert "LOOPCANARY=0 in its environment" in ran.stderr
        ends_well(program)


# ---- what can be told without ---------------------------------------------------------------------------


@pytest.mark.skipif(hasattr(sys, "remote_exec"), reason="this Python can be reached")
def test_older_versions_get_the_way_that_works_there(tmp_path: Path, loopcanary: Run):
    with targets.running(targets.IDLE_LOOP, tmp_path) as program:
        ran = attach(loopcanary, str(program.pid))
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    for words in ("from 3.14 on", "loopcanary run", "LOOPCANARY=1", f"loopcanary dump {program.pid}"):
        assert words in ran.stderr
    assert leftovers(program) == []


def test_a_bad_setting_is_refused_before_the_program_is_touched(loopcanary: Run):
    ran = loopcanary("attach", "--threshold", "soon", str(os.getpid()))
    assert ran.returncode == 2
    assert "--threshold" in ran.stderr


def test_stop_takes_no_settings(loopcanary: Run):
    ran = loopcanary("attach", "--stop", "--threshold", "1s", "1")
    assert (ran.returncode, "--stop takes no settings" in ran.stderr) == (2, True)


def test_no_process_has_the_number(loopcanary: Run):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ran = loopcanary("attach", str(ended.pid))
    assert (ran.returncode, ran.stderr) == (1, f"loopcanary: there is no process {ended.pid}\n")


# ---- the script itself, on every version ------------------------------------------------------------------

OBEDIENT = """
ready()
for line in sys.stdin:
    exec(compile(open(line.strip()).read(), "script", "exec"), {})
    print("done", flush=True)
"""

ALONE = ("-I", "-S")
"""The program finds no loopcanary by itself."""


def asked(
    process: Process, request: dict[str, object], package: str, *, only_if_loaded: bool = False
) -> Mailbox:
    return Mailbox(process, script(package, only_if_loaded=only_if_loaded), request)


def test_the_script_loads_installs_and_stops(tmp_path: Path, package_path: Path):
    package = str(package_path / "loopcanary")
    with targets.running(OBEDIENT, tmp_path, *ALONE) as program:
        process = Process.of(program.pid)
        load = asked(process, {"step": "load"}, package)
        order(program, load.script)
        assert load.is_taken
        assert targets.until(load.answer) == {"native": None}
        install = asked(process, {"step": "install", "settings": {"store": str(tmp_path / "store")}}, package)
        order(program, install.script)
        found = install.answer()
        assert found is not None
        assert {key: found[key] for key in ("already", "running", "engine", "store")} == {
            "already": False,
            "running": True,
            "engine": "native",
            "store": str(tmp_path / "store"),
        }
        stop = asked(process, {"step": "stop"}, package, only_if_loaded=True)
        order(program, stop.script)
        assert targets.until(stop.answer) == {"was_watched": True}
        for box in (load, install, stop):
            box.close()
            assert not Path(box.folder).exists()


def test_the_script_says_what_went_wrong(tmp_path: Path, package_path: Path):
    with targets.running(OBEDIENT, tmp_path, *ALONE) as program:
        process = Process.of(program.pid)
        nowhere = asked(process, {"step": "load"}, str(tmp_path / "nowhere"))
        wrong = asked(
            process,
            {"step": "install", "settings": {"threshold": "soon"}},
            str(package_path / "loopcanary"),
        )
        never = asked(process, {"step": "stop"}, "", only_if_loaded=True)
        answers = []
        for box in (never, nowhere, wrong):
            order(program, box.script)
            answers.append(box.answer())
            box.close()
    assert answers[0] == {"was_watched": False}
    assert answers[1] is not None
    assert answers[2] is not None
    assert "loopcanary is not installed in its Python" in answers[1]["error"]
    assert answers[2]["kind"] == "ConfigError"


def test_a_request_that_was_withdrawn_is_not_obeyed(tmp_path: Path, package_path: Path):
    with targets.running(OBEDIENT, tmp_path) as program:
        box = asked(Process.of(program.pid), {"step": "load"}, str(package_path / "loopcanary"))
        assert box.withdraw()
        order(program, box.script)
        assert not box.is_taken
        assert box.answer() is None
        box.close()
        assert not Path(box.folder).exists()


def test_a_request_that_was_taken_cannot_be_withdrawn(tmp_path: Path, package_path: Path):
    with targets.running(OBEDIENT, tmp_path) as program:
        box = asked(Process.of(program.pid), {"step": "load"}, str(package_path / "loopcanary"))
        order(program, box.script)
        assert not box.withdraw()
        targets.until(box.answer)
        box.close()


@pytest.mark.parametrize("answer", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"null"])
def test_an_answer_that_is_none_is_an_error(answer: bytes, tmp_path: Path):
    with targets.running(OBEDIENT, tmp_path) as program:
        box = asked(Process.of(program.pid), {"step": "load"}, "")
        Path(box.folder, "answer.json").write_bytes(answer)
        assert box.answer() == {"error": "the answer of the process cannot be read"}
        box.close()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_an_answer_that_is_no_file_is_an_error(make: Callable[[Path], None], tmp_path: Path):
    with targets.running(OBEDIENT, tmp_path) as program:
        box = asked(Process.of(program.pid), {"step": "load"}, "")
        place = Path(box.folder, "answer.json")
        make(place)
        assert box.answer() == {"error": "the answer of the process cannot be read"}
        place.rename(tmp_path / "answer")
        box.close()


def planted(tmp_path: Path, **places: str) -> Process:
    """A process as it is in a /proc of our own, with links and folders in its root."""
    root, process = tmp_path / "its root", tmp_path / "proc" / "41"
    process.mkdir(parents=True)
    (process / "root").symlink_to(root)
    (process / "stat").write_text("41 (python) S " + "0 " * 18 + "7")
    for place in ("tmp", "var/tmp", "dev/shm"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        if place in places:
            (root / place).symlink_to(places[place])
        else:
            (root / place).mkdir()
    return Process(pid=41, start_ticks=7, proc=process.parent)


def test_a_link_in_the_processs_root_is_not_followed(tmp_path: Path):
    ours = tmp_path / "ours"
    ours.mkdir()
    process = planted(tmp_path, tmp=str(ours))
    box = asked(process, {"step": "load"}, "")
    assert box.folder.startswith("/var/tmp/loopcanary-attach-41-")
    assert list(ours.iterdir()) == []
    box.close()
    assert list((process.folder / "root/var/tmp").iterdir()) == []


def test_links_everywhere_leave_no_place_for_a_request(tmp_path: Path):
    links = dict.fromkeys(("tmp", "var/tmp", "dev/shm"), str(tmp_path))
    process = planted(tmp_path, **links)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OutsideError, match="no request for process 41 can be written"):
        asked(process, {"step": "load"}, "")
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_that_was_swapped_is_not_written_to(tmp_path: Path):
    process = planted(tmp_path)
    box = asked(process, {"step": "load"}, "")
    here = Path(f"{process.folder}/root{box.folder}")
    here.rename(tmp_path / "moved")
    here.mkdir()
    (here / "kept").touch()
    (here / "waiting").touch()
    assert box.withdraw()
    box.close()
    assert sorted(path.name for path in here.iterdir()) == ["kept", "waiting"]
    assert (tmp_path / "moved" / "withdrawn").exists()


def test_what_is_not_ours_is_not_removed_with_the_folder(tmp_path: Path):
    process = planted(tmp_path)
    box = asked(process, {"step": "load"}, "")
    here = Path(f"{process.folder}/root{box.folder}")
    (here / "inner").mkdir()
    box.close()
    assert [path.name for path in here.iterdir()] == ["inner"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to another user")
def test_root_gives_the_request_to_the_processs_user(tmp_path: Path):
    process = planted(tmp_path)
    os.chown(process.folder, 65534, 65534)
    box = asked(process, {"step": "load"}, "")
    here = Path(f"{process.folder}/root{box.folder}")
    facts = [path.stat() for path in (here, *here.iterdir())]
    assert len(facts) == 4
    assert {(one.st_uid, one.st_gid, one.st_mode & 0o077) for one in facts} == {(65534, 65534, 0)}
    box.close()


def test_its_interpreter_gets_no_environment_or_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    process = planted(tmp_path)
    (process.folder / "root").unlink()
    (process.folder / "root").symlink_to("/")
    python, seen = tmp_path / "python3.99", tmp_path / "seen"
    python.write_text(
        f"#!{sys.executable}\nimport os\n"
        f"print('SECRET_TOKEN' in os.environ, os.getsid(0) == os.getpid(), file=open({str(seen)!r}, 'w'))\n"
    )
    python.chmod(0o755)
    (process.folder / "exe").symlink_to(python)
    monkeypatch.setenv("SECRET_TOKEN", "of root")
    file = MappedFile(path=str(python), base=0, end=1, device="0:0", inode=1, executable=True)
    send(process, Interpreter(version_hex=0x036300F0, addresses={}, file=file), "/script.py")
    assert seen.read_text() == "False True\n"


def test_only_the_processs_user_can_enter_the_folder(tmp_path: Path):
    with targets.running(OBEDIENT, tmp_path) as program:
        box = asked(Process.of(program.pid), {"step": "load"}, "")
        facts = Path(box.folder).stat()
        assert (facts.st_mode & 0o777, facts.st_uid) == (0o700, os.getuid())
        box.close()
