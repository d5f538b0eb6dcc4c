"""The file in which hangs are left: written and read again, torn, cut, damaged, and locked as long as its
process lives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building.evidence import BEGIN, STACK, bare, sample
from tests.building.stalls import SESSION

from loopcanary.assembly.store import Autopsy, recover
from loopcanary.flight import FlightError, holds_lock
from loopcanary.flight import HangFile as LeftHangs
from loopcanary.model import CallbackNames, StallState, ThreadStack
from loopcanary.model.hang_halves import HALF_BYTES, half, newest
from loopcanary.portable.hang_file import HangFile
from loopcanary.store import FLIGHT_FOLDER, Store
from loopcanary.wire import to_wire

MS = 1_000_000
HANG = bare(
    serial=3,
    begin_ns=BEGIN,
    end_ns=None,
    last_look_ns=BEGIN + 1_200 * MS,
    names=CallbackNames(name="handle", task="Task-7"),
    samples=tuple(sample(ms) for ms in range(20, 1_200, 10)),
    samples_dropped=(("late", 4), ("moved", 1)),
    sample_interval_ns=10 * MS,
    threads=(ThreadStack(tid=9, at_ns=BEGIN + 1_000 * MS, name="worker", stack=STACK),),
    engine="portable",
)
ENDED = bare(**{name: getattr(HANG, name) for name in ("serial", "begin_ns", "samples")}, end_ns=BEGIN + MS)
payloads = st.binary(max_size=200)


def clock():
    return BEGIN


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store" / FLIGHT_FOLDER / f"{SESSION.id}.hang"


@pytest.fixture
def file(path):
    file = HangFile(str(path), clock)
    file.facts = to_wire(SESSION)
    yield file
    file.let_go()


def left(path):
    with LeftHangs.open(path) as found:
        return [evidence for _, evidence in found.stalls()]


def written(file, number, payload):
    """The file after one more write."""
    at = number % 2 * HALF_BYTES
    data = half(number, payload)
    return file[:at].ljust(at, b"\0") + data + file[at + len(data) :]


def test_what_is_noted_is_read_again(file, path):
    file.note(HANG)
    (found,) = left(path)
    assert found.samples[-1] == HANG.samples[-1]
    assert (found.names, found.threads) == (HANG.names, HANG.threads)
    assert (found.samples_dropped, found.end_ns) == (HANG.samples_dropped, None)
    assert (found.last_look_ns, found.engine) == (HANG.last_look_ns, "portable")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700


def test_the_samples_that_are_left_cover_all_of_it(file, path):
    file.note(HANG)
    (found,) = left(path)
    gaps = {b.at_ns - a.at_ns for a, b in zip(found.samples, found.samples[1:], strict=False)}
    assert gaps == {found.sample_interval_ns} == {40 * MS}
    assert found.samples[0].at_ns - HANG.samples[0].at_ns < 40 * MS


def test_it_is_gone_when_the_last_hang_was_stored(file, path):
    file.note(HANG)
    file.note(bare(serial=4, begin_ns=BEGIN, end_ns=None))
    file.forget(3)
    assert [one.serial for one in left(path)] == [4]
    file.forget(4)
    assert not path.exists()
    file.note(HANG)  # and there is a next one
    assert [one.serial for one in left(path)] == [3]


def test_a_hang_that_has_ended_is_left_as_ended_until_it_is_stored(file, path):
    file.note(HANG)
    file.note(ENDED)
    assert [one.end_ns for one in left(path)] == [ENDED.end_ns]


def test_a_stall_that_was_no_hang_is_not_left(file, path):
    file.note(ENDED)
    file.forget(ENDED.serial)
    assert not path.exists()


def test_where_nothing_can_be_written_it_is_counted_and_no_more(tmp_path):
    (tmp_path / "file").touch()
    file = HangFile(str(tmp_path / "file" / "flight" / "a.hang"), clock)
    file.note(HANG)
    file.forget()
    assert file.counts() == {"hang_notes": 0, "hang_note_faults": 1}


def test_a_thousand_frames_that_differ_have_room_in_fewer_samples(file, path):
    def deep(ms):
        frames = [
            bytes.hex(os.urandom(40)) + f"{ms}-{number}" for number in range(256)
        ]  # zlib makes nothing of them
        return [STACK.frames[0].__class__(qualname=name, file=name) for name in frames]

    samples = tuple(sample(ms, stack=STACK.__class__(frames=tuple(deep(ms)))) for ms in range(0, 1_280, 10))
    file.note(bare(serial=1, end_ns=None, samples=samples, sample_interval_ns=10 * MS))
    (found,) = left(path)
    assert 1 <= len(found.samples) < 32
    assert found.samples[-1] == samples[-1]


def test_the_program_may_close_every_descriptor(file, path):
    """A daemon does, and opens files of its own, which get their numbers."""
    file.note(HANG)
    number = file._held[0]
    os.close(number)
    theirs = os.open(os.devnull, os.O_RDONLY)
    os.dup2(theirs, number)
    file.note(HANG)
    file.forget()
    assert not path.exists()
    os.fstat(number)  # theirs is open still
    os.close(number)
    if theirs != number:
        os.close(theirs)


def test_a_lock_that_the_program_has_closed_is_taken_again(file, path):
    """The next open may get the same number."""
    file.note(HANG)
    os.close(file._held[0])
    file.note(HANG)
    assert holds_lock(path)


def test_a_file_that_was_removed_is_made_and_locked_again(file, path):
    file.note(HANG)
    path.unlink()
    file.note(HANG)
    assert holds_lock(path)
    assert [one.serial for one in left(path)] == [3]


def test_a_file_in_its_place_is_not_removed(file, path):
    file.note(HANG)
    path.unlink()
    path.write_text("theirs")
    file.forget()
    assert path.read_text() == "theirs"
    assert file._held is None


def test_of_two_with_one_path_the_second_writes_nothing(file, path):
    file.note(HANG)
    second = HangFile(str(path), clock)
    second.note(ENDED)
    second.note(bare(serial=4, begin_ns=BEGIN, end_ns=None))
    second.forget()
    assert second.counts() == {"hang_notes": 0, "hang_note_faults": 1}
    assert [one.serial for one in left(path)] == [3]
    assert holds_lock(path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda at: at.symlink_to(os.devnull)])
def test_what_is_no_regular_file_is_left_alone(file, path, make):
    path.parent.mkdir(parents=True)
    make(path)
    was = path.lstat()
    file.note(HANG)
    assert (file.counts(), file._held) == ({"hang_notes": 0, "hang_note_faults": 1}, None)
    file.forget()
    assert os.path.samestat(path.lstat(), was)


def test_a_file_of_another_user_is_left_alone(file, path, monkeypatch):
    path.parent.mkdir(parents=True)
    path.write_text("theirs")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    file.note(HANG)
    file.forget()
    assert (path.read_text(), file._held) == ("theirs", None)


LOW = """
import os, sys, time
from loopcanary.model import StallEvidence, StallScope
from loopcanary.portable.hang_file import HangFile

os.close(1)
file = HangFile(sys.argv[1], time.monotonic_ns)
times = {"begin_ns": 1, "end_ns": None, "last_look_ns": 2, "threshold_ns": 1}
who = {"tid": 1, "loop_kind": "asyncio", "thread_name": "MainThread"}
opened, numbers = os.open, []
os.open = lambda *what: numbers.append(opened(*what)) or numbers[-1]
for _ in range(2):
    file.note(StallEvidence(serial=1, scope=StallScope.TURN, **who, **times))
try:
    os.write(1, b"a C library's line")
except OSError:
    print(numbers, file._held[0] > 2, file.counts(), file=sys.stderr)
"""


def test_the_number_of_a_closed_stdout_stays_free(path):
    done = subprocess.run([sys.executable, "-c", LOW, path], capture_output=True, text=True, check=False)
    assert done.stderr == "[1, 1] True {'hang_notes': 2, 'hang_note_faults': 0}\n"


# ---- whose process lives ---------------------------------------------------------------------


def is_dead(path):
    autopsy = Autopsy(own=path)
    with autopsy.open(path) as remains:
        return autopsy.is_dead(remains)


def test_a_live_process_keeps_its_file(file, path):
    file.note(HANG)
    assert not is_dead(path)


def test_a_live_process_keeps_it_where_it_lost_the_lock(file, path):
    file.note(HANG)
    os.close(file._held[0])
    assert not is_dead(path)


@pytest.mark.parametrize("is_locked", [True, False])
def test_where_the_system_has_no_proc_the_lock_says_it(file, path, is_locked, monkeypatch):
    monkeypatch.setattr("loopcanary.portable.hang_file._read", lambda _: "")
    from loopcanary.assembly.store import host_name

    file.facts = {**to_wire(SESSION), "host": host_name()}
    file.note(HANG)
    if not is_locked:
        file.let_go()
    assert is_dead(path) is not is_locked


FORKS = """
import os, sys, time
from loopcanary.flight import holds_lock
from loopcanary.model import StallEvidence, StallScope
from loopcanary.portable.hang_file import HangFile

file = HangFile(sys.argv[1], time.monotonic_ns)
times = {"begin_ns": 1, "end_ns": None, "last_look_ns": 2, "threshold_ns": 1}
who = {"tid": 1, "loop_kind": "asyncio", "thread_name": "MainThread"}
file.note(StallEvidence(serial=1, scope=StallScope.TURN, **who, **times))
file._lock.acquire()  # as where another thread writes at the fork
if os.fork() == 0:
    file.let_go()
    os._exit(not file._lock.acquire(False))
_, status = os.wait()
print(status, os.path.exists(sys.argv[1]), holds_lock(sys.argv[1]))
"""


def test_a_forked_child_leaves_file_and_lock_to_its_parent(path):
    done = subprocess.run([sys.executable, "-c", FORKS, path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 True True\n", "")


# ---- torn, cut, damaged ----------------------------------------------------------------------


@given(st.lists(payloads, min_size=1, max_size=5))
def test_the_newest_write_counts(told):
    data = b""
    for number, payload in enumerate(told):
        data = written(data, number, payload)
    assert newest(data) == told[-1]


@given(st.lists(payloads, min_size=1, max_size=4), payloads, st.data())
def test_a_write_that_was_torn_leaves_the_one_before(told, last, data):
    file = b""
    for number, payload in enumerate(told):
        file = written(file, number, payload)
    at, new = len(told) % 2 * HALF_BYTES, half(len(told), last)
    cut = data.draw(st.integers(0, len(new)))
    file = file.ljust(at, b"\0")
    torn = file[:at] + new[:cut] + file[at + cut :]
    assert newest(torn) in {told[-1], last}
    if torn[at : at + len(new)] != new:
        assert newest(torn) == told[-1]


@given(payloads, payloads, st.data())
def test_a_file_that_was_cut_has_what_is_whole(first, second, data):
    file = written(written(b"", 0, first), 1, second)
    cut = data.draw(st.integers(0, len(file) - 1))
    assert newest(file[:cut]) == (first if cut >= len(half(0, first)) else None)


@given(payloads, payloads, st.data())
def test_where_both_halves_are_damaged_nothing_counts(first, second, data):
    file = bytearray(written(written(b"", 0, first), 1, second))
    for at, payload in ((0, first), (HALF_BYTES, second)):
        place = data.draw(st.integers(0, len(half(0, payload)) * 8 - 1))
        file[at + place // 8] ^= 1 << place % 8
    assert newest(bytes(file)) is None


@given(st.binary(max_size=4_096))
def test_random_bytes_are_no_hang(data):
    assert newest(data) is None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.hang"
        path.write_bytes(data)
        with pytest.raises(FlightError, match="no whole record"):
            LeftHangs.open(path)


HUGE = (1 << 70, -(1 << 70), 1 << 2_000, 1e300, -1e300)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(HUGE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def with_another(document, value, draw):
    """The document, with this value somewhere in it."""
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = draw(st.sampled_from(list(keys)))
        if not at[key] or not isinstance(at[key], dict | list) or draw(st.booleans()):
            at[key] = value
            return document
        at = at[key]


@given(json_values, st.data())
@settings(max_examples=60)
def test_any_values_are_a_hang_or_one_line(value, data):
    """As a program of another version, or a hand, may have written them: a recovery goes on."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / FLIGHT_FOLDER / "a.hang"
        file = HangFile(str(path), clock)
        file.facts = to_wire(SESSION)
        file.note(HANG)
        whole = newest(path.read_bytes())
        file.let_go()
        document = with_another(json.loads(zlib.decompress(whole)), value, data.draw)
        text = json.dumps(document).replace(f'"pid": {os.getpid()}', '"pid": 4194304')
        path.write_bytes(half(0, zlib.compress(text.encode())))
        os.utime(path)
        store = Store(Path(folder))
        try:
            found = recover(store, living=False)
        finally:
            store.close()
    assert [stall.state for stall in found.stalls] in ([], [StallState.KILLED], [StallState.ENDED])
