"""`loopcanary dump`: programs that do known things, seen from outside."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.assembly.dump import look_at
from loopcanary.model import Frame, Stack
from loopcanary.model.outside import ProcessSight, StackReading, ThreadSight, Unseen, WaitedLock
from loopcanary.model.waiting import LockProof, LockView
from loopcanary.report.dump import deadlocks, doing_words
from loopcanary.report.frames import Again, rows

from . import targets

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(sys.platform != "linux", reason="other processes are read by /proc"),
]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def seen(pid: int) -> ProcessSight:
    sight = look_at(pid)
    assert isinstance(sight, ProcessSight), sight
    return sight


def main_of(sight: ProcessSight) -> ThreadSight:
    [main] = [thread for thread in sight.threads if thread.is_main]
    return main


def functions(thread: ThreadSight) -> list[str]:
    return [frame.qualname for frame in thread.stack.frames] if thread.stack is not None else []


def words(thread: ThreadSight, sight: ProcessSight) -> str:
    return doing_words(thread, {one.tid: one for one in sight.threads})


def sleeping_in(pid: int, call: str) -> ProcessSight | None:
    """The program, once it is in the call in which it stays: what is seen after that is one state."""
    return seen(pid) if main_of(seen(pid)).syscall == call else None


def waiting_for_lock(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    return sight if main_of(sight).lock is not None else None


# ---- what a program does ---------------------------------------------------------------------------


MATCH = ("match", "prefixmatch")
"""What `re.match` is called, up to 3.14 and later."""


def in_regex(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    main = main_of(sight)
    return sight if main.holds_gil and functions(main)[:1] in ([name] for name in MATCH) else None


def test_a_c_call_with_the_gil_is_shown_with_its_call(tmp_path: Path):
    with targets.running(targets.REGEX, tmp_path) as program:
        sight = targets.until(lambda: in_regex(program.pid))
    main = main_of(sight)
    assert main.reading is StackReading.READ
    assert functions(main)[1:] == ["handle", "<module>"]
    assert main.stack is not None
    handle = main.stack.frames[1]
    line = sight.sources[handle.file, handle.line]
    assert line[handle.column - 1 : handle.end_column - 1] == 're.match(r"(a+)+$", text)'
    assert sight.command == str(tmp_path / "target.py")
    assert sight.python == ".".join(map(str, sys.version_info[:3]))
    assert words(main, sight).endswith("holds the GIL")


def deadlocked(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    return sight if deadlocks(sight.threads) and main_of(sight).lock is not None else None


def check_deadlock(sight: ProcessSight) -> None:
    by_function = {name: thread for thread in sight.threads for name in functions(thread)}
    first, second = by_function["first"], by_function["second"]
    assert (first.name, second.name) == ("one", "two \N{SNOWMAN}")
    [circle] = deadlocks(sight.threads)
    assert set(circle) == {first.tid, second.tid}
    assert first.lock is not None
    assert second.lock is not None
    assert (first.lock.view.kind, first.lock.view.proof) == ("RLock", LockProof.OWNER)
    assert (second.lock.view.kind, second.lock.view.proof) == ("lock", LockProof.WITH)
    main = main_of(sight)
    assert main.lock is not None
    assert main.lock.view.kind == "end of a thread"


@pytest.mark.parametrize("text", [targets.DEADLOCK, targets.DEADLOCK_OF_MANAGERS], ids=["with", "managers"])
def test_two_threads_that_wait_for_each_other_are_a_deadlock(tmp_path: Path, text: str):
    with targets.running(text, tmp_path) as program:
        check_deadlock(targets.until(lambda: deadlocked(program.pid)))


def check_deadlock_of_processes(sight: ProcessSight) -> None:
    by_function = {name: thread for thread in sight.threads for name in functions(thread)}
    first, second = by_function["first"], by_function["second"]
    [circle] = deadlocks(sight.threads)
    assert set(circle) == {first.tid, second.tid}
    views = [thread.lock.view for thread in (first, second) if thread.lock is not None]
    assert [(view.kind, view.proof) for view in views] == [
        ("multiprocessing.RLock", LockProof.OWNER),
        ("multiprocessing.Lock", LockProof.WITH),
    ]
    assert words(first, sight).startswith("waits for a multiprocessing.RLock that thread")


def test_locks_of_multiprocessing_are_in_a_deadlock(tmp_path: Path):
    with targets.running(targets.DEADLOCK_OF_PROCESS_LOCKS, tmp_path) as program:
        check_deadlock_of_processes(targets.until(lambda: deadlocked(program.pid)))


def test_a_deadlock_is_seen_while_a_thread_holds_the_gil(tmp_path: Path):
    def held(pid: int) -> ProcessSight | None:
        sight = seen(pid)
        return sight if deadlocks(sight.threads) and main_of(sight).holds_gil else None

    with targets.running(targets.DEADLOCK_WITH_THE_GIL_HELD, tmp_path) as program:
        check_deadlock_of_processes(targets.until(lambda: held(program.pid)))


NOT_HERE = (
    "waits for a multiprocessing.Lock; no thread of this process is known to hold it: "
    "another process may have to release it"
)


def test_a_lock_that_another_process_holds_has_no_holder_here(tmp_path: Path):
    with targets.running(targets.LOCK_OF_A_CHILD, tmp_path) as program:
        sight = targets.until(lambda: sleeping_in(program.pid, "futex"))
    assert words(main_of(sight), sight) == NOT_HERE


def test_who_filled_a_queue_of_multiprocessing_does_not_hold_it(tmp_path: Path):
    """Its room for one item is the same lock as a Lock, which the reader releases."""
    with targets.running(targets.FULL_QUEUE, tmp_path) as program:
        sight = targets.until(lambda: waiting_for_lock(program.pid))
    assert words(main_of(sight), sight) == NOT_HERE


def circling(pid: int) -> ProcessSight | None:
    """Stack and lock of a thread are read one after the other: both are of the circle."""
    sight = seen(pid)
    there = all(
        thread.lock is not None and "Barrier._wait" not in functions(thread) for thread in sight.threads
    )
    return sight if there else None


def test_a_circle_that_a_timeout_ends_is_no_deadlock(tmp_path: Path):
    with targets.running(targets.CIRCLE_WITH_A_TIMEOUT, tmp_path) as program:
        sight = targets.until(lambda: circling(program.pid))
    by_function = {name: thread for thread in sight.threads for name in functions(thread)}
    first, second = by_function["first"], by_function["second"]
    assert (first.lock.holder_tid, second.lock.holder_tid) == (second.tid, first.tid)
    assert [thread.lock.has_timeout for thread in (first, second, main_of(sight))] == [True, False, False]
    assert words(first, sight).endswith(", with a timeout")
    assert deadlocks(sight.threads) == []


def test_a_loop_without_work_waits_for_something_to_happen(tmp_path: Path):
    with targets.running(targets.IDLE_LOOP, tmp_path) as program:
        sight = targets.until(lambda: sleeping_in(program.pid, "epoll_wait"))
    main = main_of(sight)
    assert "BaseEventLoop.run_forever" in functions(main)
    assert words(main, sight) == "waits for something to happen (epoll_wait)"
    assert sight.session is None
    assert not any(thread.holds_gil for thread in sight.threads)


def test_deep_recursion_is_cut_where_the_walker_stops(tmp_path: Path):
    with targets.running(targets.RECURSION, tmp_path) as program:
        sight = targets.until(lambda: sleeping_in(program.pid, "clock_nanosleep"))
    main = main_of(sight)
    assert main.stack is not None
    assert main.stack.truncated
    assert set(functions(main)) == {"down"}
    assert len(main.stack.frames) == 256


def gil_waited_for(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    holders = [thread for thread in sight.threads if thread.holds_gil and "holder" in functions(thread)]
    # Who waits for the GIL wakes up every few milliseconds to ask for it.
    return sight if holders and main_of(sight).waits_for_gil else None


def test_who_holds_the_gil_and_who_waits_for_it(tmp_path: Path):
    with targets.running(targets.GIL_WAITERS, tmp_path) as program:
        sight = targets.until(lambda: gil_waited_for(program.pid))
    main = main_of(sight)
    assert words(main, sight) == "waits for the GIL"
    assert sum(thread.holds_gil for thread in sight.threads) == 1


def test_a_socket_is_named_by_its_peer(tmp_path: Path):
    with targets.running(targets.PEER, tmp_path) as program:
        [port] = program.said  # type: ignore[attr-defined]
        sight = targets.until(lambda: sleeping_in(program.pid, "recvfrom"))
    assert words(main_of(sight), sight) == f"waits in recvfrom on socket to 127.0.0.1:{port}"


def test_a_wait_for_a_notice_differs_from_a_wait_for_a_lock(tmp_path: Path):
    with targets.running(targets.QUEUE, tmp_path) as program:
        sight = targets.until(lambda: sleeping_in(program.pid, "futex"))
    assert words(main_of(sight), sight) == "waits to be notified (Queue.get)"


def test_a_stack_of_a_running_thread_is_one_that_it_had(tmp_path: Path):
    """left and right take turns, all the way up, whatever is read when."""
    with targets.running(targets.MOVING, tmp_path) as program:
        targets.until(lambda: True if "left" in functions(main_of(seen(program.pid))) else None)
        stacks = [main_of(seen(program.pid)) for _ in range(50)]
    for thread in stacks:
        if thread.stack is None:
            assert thread.reading in (StackReading.MOVING, StackReading.NO_FRAMES)
            continue
        *inner, outermost = functions(thread)
        assert outermost == "<module>"
        assert inner[::-1] == ["left", "right"] * (len(inner) // 2) + ["left"] * (len(inner) % 2)
    assert any(thread.stack is not None for thread in stacks)


# ---- other versions -------------------------------------------------------------------------------


@pytest.fixture(params=range(4))
def other(request: pytest.FixtureRequest) -> str:
    found = targets.other_pythons()
    if request.param >= len(found):
        pytest.skip("no more interpreters of other versions here")
    return found[request.param]


def test_another_version_is_read_by_this_one(tmp_path: Path, other: str):
    with targets.running(targets.DEADLOCK, tmp_path, python=other) as program:
        check_deadlock(targets.until(lambda: deadlocked(program.pid)))
    with targets.running(targets.DEADLOCK_OF_PROCESS_LOCKS, tmp_path, python=other) as program:
        check_deadlock_of_processes(targets.until(lambda: deadlocked(program.pid)))
    with targets.running(targets.REGEX, tmp_path, python=other) as program:
        sight = targets.until(lambda: in_regex(program.pid))
    assert functions(main_of(sight))[1:] == ["handle", "<module>"]
    assert not sight.python.startswith(".".join(map(str, sys.version_info[:2])) + ".")


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (0x030A00F0, "not known"),
        (0x031000F0, "not known"),
        (0x030D00A1, "not known"),  # an alpha
        (sys.hexversion + 0x100, "not those of its version" if sys.version_info >= (3, 13) else None),
    ],
)
def test_versions_that_are_not_known_are_refused(version: int, problem: str | None):
    from loopcanary import _native

    addresses = dict.fromkeys(_native.OUTSIDE_SYMBOLS, id(object))
    if problem is None:
        _native.outside_open(os.getpid(), version, addresses)  # nothing is published that could differ
        return
    with pytest.raises(RuntimeError, match=problem):
        _native.outside_open(os.getpid(), version, addresses)


@pytest.mark.parametrize(
    ("opening", "problem"),
    [
        ((b"xdebugpy", 0x030D01F0, 1), "free-threaded"),
        ((b"xdebugpy", 0x030D02F0, 0), "not those of its version"),
        ((b"xdebugpu", 0x030D01F0, 0), "not those of its version"),
        ((b"xdebugpy", 0x030D01F0, 0), "do not fit together"),  # and nothing but zeros
    ],
)
def test_what_an_interpreter_publishes_of_itself_is_checked(opening: tuple[bytes, int, int], problem: str):
    from loopcanary import _native

    runtime = ctypes.create_string_buffer(struct.pack("<8sQQ", *opening), 4096)
    addresses = dict.fromkeys(_native.OUTSIDE_SYMBOLS, ctypes.addressof(runtime))
    with pytest.raises(RuntimeError, match=problem):
        _native.outside_open(os.getpid(), 0x030D01F0, addresses)


def test_addresses_that_are_none_are_no_trouble():
    """A process may hold anything."""
    from loopcanary import _native

    if sys.version_info >= (3, 13):
        pytest.skip("refused: its debug offsets cannot be read")
    for address in (0, 8, 1 << 62, (1 << 64) - 8, id(object)):
        addresses = dict.fromkeys(_native.OUTSIDE_SYMBOLS, address)
        handle = _native.outside_open(os.getpid(), sys.hexversion, addresses)
        assert isinstance(_native.outside_threads(handle), list)
        assert _native.outside_stack(handle, address)[3] == ()
        assert _native.outside_gil(handle, address)[0] == 0
        assert _native.outside_lock(handle, address, address)[0] == 0


# ---- what is watched -------------------------------------------------------------------------------

WATCHED = """
class App:
    async def handle(self, text):
        return re.match(r"(a+)+$", text)
async def main():
    ready()
    await asyncio.create_task(App().handle("a" * 64 + "b"), name="request-7")
asyncio.run(main())
"""


def watched_and_late(pid: int) -> ProcessSight | None:
    sight = seen(pid)
    lane = main_of(sight).lane
    # Before it, `main` itself may be late on a busy machine.
    is_told = lane is not None and lane.task == "request-7" and (lane.busy_ns or 0) > lane.threshold_ns
    return sight if is_told else None


def test_a_watched_program_tells_what_its_loop_is_busy_with(tmp_path: Path, package_path: Path):
    options = ("-m", "loopcanary", "run", "--quiet", "--store", str(tmp_path / "store"))
    path = os.pathsep.join(filter(None, [str(package_path), os.environ.get("PYTHONPATH")]))
    with targets.running(WATCHED, tmp_path, *options, PYTHONPATH=path) as program:
        sight = targets.until(lambda: watched_and_late(program.pid))
    lane = main_of(sight).lane
    assert lane is not None
    assert (lane.loop_kind, lane.callback, lane.task) == ("asyncio", "App.handle", "request-7")
    assert lane.threshold_ns == pytest.approx(100_000_000, rel=0.01)
    assert sight.session is not None
    assert f"-{program.pid}-" in sight.session


# ---- the command ------------------------------------------------------------------------------------


def test_the_text_has_what_matters_first(tmp_path: Path, loopcanary: Run):
    with targets.running(targets.DEADLOCK, tmp_path) as program:
        targets.until(lambda: deadlocked(program.pid))
        ran = loopcanary("dump", str(program.pid))
    assert ran.returncode == 0, ran.stderr
    head, *verdicts = ran.stdout.split("\n\n")[0].splitlines()
    assert head.startswith(f"process {program.pid}  ")
    assert re.fullmatch(r"deadlock thread (\d+).* -> thread (\d+).* -> thread \1.*", verdicts[0])
    assert verdicts[1] == "GIL      free"
    assert "waits for an RLock that thread" in ran.stdout
    assert re.search(r"^ {7}with b:$", ran.stdout, re.MULTILINE)


def test_recursion_is_one_line_unless_all_is_asked_for(tmp_path: Path, loopcanary: Run):
    with targets.running(targets.CALM_RECURSION, tmp_path) as program:
        targets.until(lambda: sleeping_in(program.pid, "clock_nanosleep"))
        short = loopcanary("dump", str(program.pid))
        whole = loopcanary("dump", "--all", str(program.pid))
    assert short.stdout.count("in down") == 1
    assert "the same function, 40 more times" in short.stdout
    assert whole.stdout.count("in down") == 41


def test_json_has_the_fields_that_the_page_names(tmp_path: Path, loopcanary: Run, tree: Path):
    with targets.running(targets.DEADLOCK, tmp_path) as program:
        targets.until(lambda: deadlocked(program.pid))
        ran = loopcanary("dump", "--format", "json", str(program.pid))
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["schema"], found["pid"]) == (1, program.pid)
    page = (tree / "docs/how-to/dump.md").read_text(encoding="utf-8")
    assert {name for name in names_in(found) if f"`{name}`" not in page} == set()


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def test_a_number_that_no_process_has(loopcanary: Run):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ran = loopcanary("dump", str(ended.pid))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"loopcanary: there is no process {ended.pid}\n"


@pytest.mark.parametrize("word", ["abc", "0", "-1", ""])
def test_what_is_no_process_number_is_bad_use(word: str, loopcanary: Run):
    ran = loopcanary("dump", "--", word)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1


# ---- odd targets --------------------------------------------------------------------------------------


def unseen(pid: int) -> Unseen:
    found = look_at(pid)
    assert isinstance(found, Unseen), found
    return found


def test_a_program_that_is_not_python():
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as program:
        try:
            found = targets.until(lambda: sleeps(program.pid))
        finally:
            program.kill()
    assert found.why.startswith(f"process {program.pid} does not run Python: it is ")
    assert not found.is_refused


def sleeps(pid: int) -> Unseen | None:
    """Not before exec: until then it is a copy of this very interpreter."""
    return unseen(pid) if Path(f"/proc/{pid}/comm").read_text() == "sleep\n" else None


def test_a_program_that_has_ended_and_is_not_reaped():
    program = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    found = unseen(program.pid)
    program.wait()
    assert found.why.startswith(f"process {program.pid} has ended")


def test_a_program_that_ends_while_it_is_read(tmp_path: Path):
    from loopcanary import _native, outside

    with targets.running(targets.REGEX, tmp_path) as program:
        process = outside.Process.of(program.pid)
        with outside.Memory(process) as memory:
            interpreter = outside.locate(process, memory, _native.OUTSIDE_SYMBOLS)
            program.kill()
            program.wait()
            with pytest.raises(outside.OutsideError, match=r"there is no process|ended"):
                outside.look(process, interpreter, _native, lambda _: None)
            with pytest.raises(outside.OutsideError, match=r"there is no process|ended"):
                outside.locate(process, memory, _native.OUTSIDE_SYMBOLS)


def test_a_stopped_program_is_seen_and_stays_stopped(tmp_path: Path):
    with targets.running(targets.MOVING, tmp_path) as program:
        program.send_signal(signal.SIGSTOP)
        targets.until(lambda: True if state_of(program.pid) == "T" else None)
        sight = seen(program.pid)
        assert state_of(program.pid) == "T"
    assert words(main_of(sight), sight).startswith("is stopped by a signal")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become somebody else")
def test_another_users_program_is_refused_with_its_user(tmp_path: Path, package_path: Path):
    code = (
        "import os, sys; from loopcanary.assembly.dump import look_at; os.setgid(65534); os.setuid(65534);"
        "print(look_at(int(sys.argv[1])))"
    )
    # What the other user cannot open (a home folder) has to be imported before.
    code = "import loopcanary.assembly.dump, loopcanary._native;" + code
    with targets.running(targets.IDLE_LOOP, tmp_path) as program:
        ran = subprocess.run(
            [sys.executable, "-c", code, str(program.pid)],
            env={**os.environ, "PYTHONPATH": str(package_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "belongs to user root: run the command as that user or with sudo" in ran.stdout
    assert "is_refused=True" in ran.stdout


# ---- pieces ---------------------------------------------------------------------------------------


class BytesAsMemory:
    """A process whose memory begins at 0x1000 and is these bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, address: int, size: int) -> bytes | None:
        at = address - 0x1000
        return self._data[at : at + size] if at >= 0 and at + size <= len(self._data) else None

    def words(self, layout: struct.Struct, address: int) -> tuple[int, ...] | None:
        data = self.read(address, layout.size)
        return None if data is None else layout.unpack(data)


def own_library() -> Path:
    """A small library of the machine's own kind."""
    from loopcanary import _native

    return Path(_native.__file__)


@given(st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=40), st.integers(0, 8192))
def test_no_bytes_in_the_place_of_a_library_do_harm(changes: list[tuple[int, int]], length: int):
    from loopcanary.outside import elf
    from loopcanary.outside.memory import MappedFile

    data = bytearray(own_library().read_bytes()[: 4096 + length])
    for at, value in changes:
        data[at] = value
    memory: Any = BytesAsMemory(bytes(data))
    file = MappedFile(path="/x", base=0x1000, end=0x9000, device="0:0", inode=1, executable=True)
    image = elf.read_image(memory, file)
    if image is not None:
        found = elf.exported(memory, file, image, ["PyInit__native", "_PyRuntime"])
        assert set(found) <= {"PyInit__native", "_PyRuntime"}


HAS_NO_EXPORTS = """
#include <unistd.h>
unsigned long long loopcanary_probe = 0x6c6f6f7063616e61;
int main(void) { write(1, "ready", 5); pause(); return (int)loopcanary_probe; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
@pytest.mark.parametrize("flags", [(), ("-rdynamic",)], ids=["in its file only", "exported"])
def test_a_symbol_is_found_in_memory_or_else_in_the_file(tmp_path: Path, flags: tuple[str, ...]):
    from loopcanary import outside
    from loopcanary.outside import elf
    from loopcanary.outside.memory import mapped_files, mappings, openable

    source, binary = tmp_path / "probe.c", tmp_path / "probe"
    source.write_text(HAS_NO_EXPORTS, encoding="utf-8")
    subprocess.run(["cc", *flags, "-o", str(binary), str(source)], check=True)
    with subprocess.Popen([str(binary)], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.read(5) == b"ready"
            process = outside.Process.of(program.pid)
            with outside.Memory(process) as memory:
                [file] = [one for one in mapped_files(mappings(process)) if one.path == str(binary)]
                image = elf.read_image(memory, file)
                assert image is not None
                exported = elf.exported(memory, file, image, ["loopcanary_probe", "main", "nothing"])
                path = openable(process, file)
                assert path is not None
                found = elf.in_file(path, image, ["loopcanary_probe", "nothing"])
                assert memory.read(found["loopcanary_probe"], 8) == b"anacpool"
        finally:
            program.kill()
    assert exported == (found if flags else {})
    assert set(found) == {"loopcanary_probe"}


@pytest.mark.parametrize("is_the_device", [True, False])
def test_a_file_of_another_device_is_another_file(is_the_device: bool, tmp_path: Path):
    """Its path leads to it in no process's root: this /proc has none."""
    from loopcanary.outside import Process
    from loopcanary.outside.memory import MappedFile, openable

    path = tmp_path / "file"
    path.touch()
    facts = path.stat()
    device = facts.st_dev if is_the_device else facts.st_dev ^ 1
    file = MappedFile(
        path=str(path),
        base=0,
        end=1,
        device=f"{os.major(device):02x}:{os.minor(device):02x}",
        inode=facts.st_ino,
        executable=False,
    )
    process = Process(pid=41, start_ticks=7, proc=tmp_path)
    assert openable(process, file) == (str(path) if is_the_device else None)


def frame(name: str) -> Frame:
    return Frame(qualname=name, file="f.py", line=1)


@given(st.text("abc", max_size=40))
def test_frames_taken_together_are_the_frames(names: str):
    frames = [frame(name) for name in names]
    again: list[Frame] = []
    for row in rows(frames):
        again += again[-row.period :] * row.times if isinstance(row, Again) else [row]
    assert again == frames


def test_the_shortest_repetition_is_shown():
    assert rows([frame(name) for name in "abababab"]) == [frame("a"), frame("b"), Again(period=2, times=3)]
    assert rows([frame("a")] * 2) == [frame("a"), frame("a")]


def thread(tid: int, waits_for: int | None = None) -> ThreadSight:
    plain = ThreadSight(tid=tid, name="", is_main=False, state="S", syscall="futex", stack=Stack(frames=()))
    if waits_for is None:
        return plain
    view = LockView(kind="lock", proof=LockProof.WITH)
    return replace(plain, lock=WaitedLock(view=view, holder_tid=waits_for))


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ({1: None, 2: 1, 3: 2}, []),
        ({1: 2, 2: 1, 3: 1}, [{1, 2}]),
        ({1: 2, 2: 3, 3: 1, 4: 5, 5: 4}, [{1, 2, 3}, {4, 5}]),
        ({1: 1}, [{1}]),
        ({1: 9}, []),  # whose holder has ended
    ],
)
def test_circles_of_waiting_threads(waits: dict[int, int | None], expected: list[set[int]]):
    found = deadlocks([thread(tid, holder) for tid, holder in waits.items()])
    assert [set(circle) for circle in found] == expected
