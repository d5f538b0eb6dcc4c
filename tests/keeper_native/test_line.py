"""What a watched process does to have a keeper: it rings, starts one, and writes what that says."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopcanary._native import open_keeper  # type: ignore[attr-defined]
from loopcanary.flight import FlightFile
from loopcanary.flight import format as layout
from loopcanary.flight.format import ProcessState

from .agents import Agent
from .test_page import words

PATIENCE_MS = 60_000
WORD_IS_DUE_NS = 300_000_000
"""More than a hang of these agents, and what a judge of it has."""
SPEAKS = "native.speaks(os.fstat(2).st_dev, os.fstat(2).st_ino)"
HANG = "!import ctypes; held, out = os.pipe(); token = native.work_begin('hang')"
# With the GIL held, until the test lets it go on.
HELD = "ctypes.PyDLL(None).read({fd}, ctypes.create_string_buffer(1), 1)"


class Place:
    """A folder with a bell, and a script in place of a keeper that says what it found at its start."""

    def __init__(self, folder: Path) -> None:
        self.bell, self.mark, self.found = folder / "bell", folder / "mark", folder / "found"
        os.mkfifo(self.found)
        self.ear = os.open(self.found, os.O_RDWR | os.O_NONBLOCK)

    def set_in(self, agent: Agent, script: str = "pwd; nice; umask; ls /proc/self/fd | wc -l") -> None:
        shell = (b"/bin/sh", b"-c", f"exec 9>{self.found}; ({script}; echo ready) >&9".encode())
        given = shell, (b"PATH=/usr/bin:/bin",), os.fsencode(self.mark), os.fsencode(self.bell), b"its.flight"
        assert agent.do(f"native.set_keeper(*{given!r})") is None

    def heard(self) -> str:
        """What the script said, up to `ready`."""
        said = b""
        while not said.endswith(b"ready\n"):
            assert select.select([self.ear], [], [], PATIENCE_MS / 1000)[0]
            said += os.read(self.ear, 1000)
        return said.decode()

    def listens(self) -> int:
        """The bell's other end, from now on; as a keeper has it, never at its end."""
        os.mkfifo(self.bell)
        return os.open(self.bell, os.O_RDWR | os.O_NONBLOCK)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    os.close(made.ear)


def rung(bell: int) -> bytes:
    """Waits for a ring, and takes all there are."""
    readable = select.poll()
    readable.register(bell, select.POLLIN)
    assert readable.poll(PATIENCE_MS)
    return os.read(bell, 100)


def counters(agent: Agent) -> dict[str, int]:
    with FlightFile.open(agent.path) as file:
        return dict(file.counters())


def read_some(fd: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        assert select.select([fd], [], [], PATIENCE_MS / 1000)[0]
        data += os.read(fd, count - len(data))
    return data


def wait_for(agent: Agent, **header: int) -> None:
    """Waits until the flight file's header says so."""
    poll = select.poll()
    while header.items() - layout.HEADER.read(agent.path.read_bytes()[: layout.HEADER.size], 0).items():
        poll.poll(5)


def written(agent: Agent, number: int) -> None:
    """Waits until the text of this number is written, or given up."""
    wait_for(agent, text_written=number)


def test_a_stall_that_goes_on_rings(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    bell = place.listens()
    agent.do(HANG)
    agent.tell("os.read(held, 1)")  # within the stall
    assert set(rung(bell).splitlines()) == {b"its.flight"}
    agent.process.kill()


def test_the_end_of_a_stall_rings(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    bell = place.listens()
    agent.do("stall()")
    rung(bell)
    assert agent.do("native.ring_keeper()") is True
    assert counters(agent)["keepers_started"] == 0


def test_where_no_keeper_hears_one_is_started(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    agent.do("stall()")
    folder, nice, umask, descriptors, _ = place.heard().splitlines()
    # stdin, stdout, stderr, the script's own, and the folder that ls reads.
    assert (folder, nice, umask, descriptors) == ("/", str(max(os.nice(0), 10)), "0077", "5")
    assert agent.do("os.waitpid(-1, os.WNOHANG)").startswith("ChildProcessError")
    assert agent.do("native.ring_keeper()") is False
    assert counters(agent)["keepers_started"] == 1


def test_short_work_starts_no_keeper(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin(threshold_ns=3_600 * 10**9, hang_ns=3_600 * 10**9)  # whatever the host makes of it
    place.set_in(agent)
    agent.do("spin(0.01)")
    agent.do("native.work_end(native.work_begin('short'))")
    assert agent.do("native.recorded()[1]") == 0
    assert agent.do("len(os.listdir('/proc/self/task'))") == 2
    assert not place.mark.exists()


def test_what_is_not_completed_is_recorded_too(begin: Callable[..., Agent]) -> None:
    agent = begin()
    assert agent.do("native.recorded()") == [0, 0]
    agent.do("native.pause(60.0)")  # nothing completes the slot
    agent.do("native.work_end((native.work_begin('work'), spin(0.03))[0])")
    lanes, first = agent.do("native.recorded()")
    assert (lanes, first >= 1) == (1, True)  # two, where the rest of the turn had to wait for a core
    agent.do("native.resume()")
    agent.do("stall()")
    agent.do("native.pause(60.0)")
    lanes, second = agent.do("native.recorded()")
    assert (lanes, second > first) == (1, True)


def test_of_two_processes_one_starts_it(tmp_path: Path, begin: Callable[..., Agent], place: Place) -> None:
    agents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        agents.append(Agent.begin(tmp_path / name))
        place.set_in(agents[-1])
    try:
        for agent in agents:
            agent.do("stall()")
            assert agent.do("native.ring_keeper()") is False
        assert [counters(agent)["keepers_started"] for agent in agents] == [1, 0]
    finally:
        for agent in agents:
            agent.process.kill()
            agent.process.communicate()


def test_what_cannot_be_started_is_counted(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    given = (b"/no/such/file",), (), os.fsencode(place.mark), os.fsencode(place.bell), b""
    agent.do(f"native.set_keeper(*{given!r})")
    agent.do("stall()")
    assert agent.do("native.ring_keeper()") is False
    assert agent.do("native.end_with_keeper(3600.0)") is False  # at once: no keeper will come
    assert counters(agent)["keepers_refused"] == 1
    assert agent.do("native.keeper_outcome()") == errno.ENOENT


@pytest.mark.parametrize("kind", ["file", "fifo of another kind"])
def test_a_bell_that_is_no_fifo_is_left_alone(begin: Callable[..., Agent], place: Place, kind: str) -> None:
    agent = begin()
    place.set_in(agent)
    if kind == "file":
        place.bell.write_text("")
    else:
        place.bell.symlink_to(place.found)
    agent.do("stall()")
    assert agent.do("native.ring_keeper()") is False
    assert counters(agent)["keepers_started"] == 0
    assert kind != "file" or place.bell.read_text() == ""


def test_a_text_is_written_while_c_holds_the_gil(begin: Callable[..., Agent], place: Place) -> None:
    end, stderr = os.pipe()
    agent = begin(stderr=stderr)
    os.close(stderr)
    agent.do(SPEAKS)
    agent.do(HANG)
    fd = agent.do("held")
    agent.tell(HELD.format(fd=fd))
    assert open_keeper(str(agent.path)).say(b"one line\nand another\n")
    assert read_some(end, 21) == b"one line\nand another\n"
    agent.process.kill()
    agent.process.wait()
    assert os.read(end, 1) == b""  # nothing of ours keeps it open
    os.close(end)


WORDS = "native.speaks(os.fstat(2).st_dev, os.fstat(2).st_ino, (b'/', b'/usr/lib'))"


@pytest.mark.parametrize("taker", [0, 1, 2, 3])
def test_the_first_word_of_a_hang_needs_no_gil(begin: Callable[..., Agent], taker: int) -> None:
    end, stderr = os.pipe()
    agent = begin(stderr=stderr)
    os.close(stderr)
    agent.do(WORDS)
    agent.do(f"native.set_taker({taker})")
    agent.do(HANG)
    agent.tell(HELD.format(fd=agent.do("held")))
    said = read_some(end, 40).decode()
    assert re.match(r"\[loopcanary\] blocked for \d+\.\d s in ", said)
    agent.process.kill()
    os.close(end)


def test_a_hang_that_was_judged_has_no_first_word(begin: Callable[..., Agent]) -> None:
    end, stderr = os.pipe()
    agent = begin(stderr=stderr)
    os.close(stderr)
    agent.do(WORDS)
    page = open_keeper(str(agent.path))
    for serial in (1, 2):  # the next stalls'
        page.tell(serial, serial)
    agent.do(HANG)
    agent.tell(HELD.format(fd=agent.do("held")))
    poll = select.poll()
    with FlightFile.open(agent.path) as file:
        while not any(one.last_look_ns - one.begin_ns > WORD_IS_DUE_NS for _, one in file.stalls()):
            poll.poll(5)
    assert page.say(b"the keeper's\n")
    assert read_some(end, 13) == b"the keeper's\n"
    with pytest.raises(ValueError, match="slot 16 of 16"):
        page.tell(16, 1)
    agent.process.kill()
    os.close(end)


def test_a_terminal_begins_with_a_line_break(begin: Callable[..., Agent]) -> None:
    master, terminal = pty.openpty()
    agent = begin(stderr=terminal)
    agent.do(SPEAKS)
    agent.do("stall()")
    assert open_keeper(str(agent.path)).say(b"a line\n")
    assert read_some(master, 10) == b"\r\na line\r\n"
    os.close(master)
    os.close(terminal)


def test_a_file_is_written_at_its_offset(tmp_path: Path, begin: Callable[..., Agent]) -> None:
    with (tmp_path / "stderr").open("w+") as stderr:
        agent = begin(stderr=stderr)
        agent.do(SPEAKS)
        agent.do("os.write(2, b'before ')")
        agent.do("stall()")
        keeper = open_keeper(str(agent.path))
        assert keeper.say(b"a line\nno line")
        written(agent, 1)
        agent.do("os.write(2, b'after')")
        assert Path(stderr.name).read_text() == "before a line\nafter"


@pytest.mark.parametrize("silent", ["!pass", "native.speaks(1, 2)", "!os.dup2(os.open('/dev/null', 1), 2)"])
def test_what_may_not_speak_is_silent(tmp_path: Path, begin: Callable[..., Agent], silent: str) -> None:
    with (tmp_path / "stderr").open("w+") as stderr:
        agent = begin(stderr=stderr)
        if silent != "!pass":
            agent.do(SPEAKS)
        agent.do(silent)
        agent.do("stall()")
        assert open_keeper(str(agent.path)).say(b"a line\n")
        written(agent, 1)
        assert Path(stderr.name).read_text() == ""
        assert counters(agent)["texts_dropped"] == 1


def test_a_full_pipe_gives_up(begin: Callable[..., Agent]) -> None:
    end, stderr = os.pipe()
    agent = begin(stderr=stderr)
    agent.do(SPEAKS)
    os.set_blocking(stderr, False)
    with suppress(BlockingIOError):
        while True:
            os.write(stderr, b"x" * 4096)
    os.set_blocking(stderr, True)
    agent.do("stall()")
    keeper = open_keeper(str(agent.path))
    assert keeper.say(b"a line\n")
    written(agent, 1)
    assert counters(agent)["texts_dropped"] == 1
    while b"x" in os.read(end, 1 << 20):
        if not select.select([end], [], [], 0)[0]:
            break
    assert keeper.say(b"another\n")
    assert read_some(end, 8) == b"another\n"
    os.close(end)
    os.close(stderr)


def test_long_texts_are_written_whole(begin: Callable[..., Agent]) -> None:
    end, stderr = os.pipe()
    agent = begin(stderr=stderr)
    agent.do(SPEAKS)
    agent.do("stall()")
    text = b"".join(b"line %d of the text\n" % number for number in range(370))
    assert 4096 < len(text) < 8192
    assert open_keeper(str(agent.path)).say(text)
    assert read_some(end, len(text)) == text
    os.close(end)
    os.close(stderr)


def test_an_end_waits_for_what_the_keeper_has(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    bell = place.listens()
    agent.do("stall()")
    rung(bell)
    agent.tell("native.end_with_keeper(3600.0)")
    wait_for(agent, state=ProcessState.ENDED)
    rung(bell)
    keeper = open_keeper(str(agent.path))
    assert keeper.say(b"the end\n")
    keeper.set_closed()
    assert agent.answer() is True
    assert words(agent.path)["text_number"] == 1


def test_a_silent_keeper_is_not_waited_for_any_longer(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    place.listens()
    agent.do("stall()")
    assert agent.do("native.end_with_keeper(0.05)") is False
    assert agent.do("native.stop(True, 60.0)") is None


def test_an_end_without_an_engine_or_keeper(begin: Callable[..., Agent]) -> None:
    agent = begin()
    assert agent.do("native.set_taker(False)") is None
    assert agent.do("native.end_with_keeper(3600.0)") is False
    agent.do("native.stop(True, 60.0)")
    assert agent.do("native.end_with_keeper(3600.0)") is False
    assert agent.do("native.ring_keeper()") is False


def overwrite(agent: Agent, field: str, value: int) -> None:
    section = layout.HEADER.offsets["sections"] + layout.SectionKind.KEEPER * layout.SECTION.size
    with agent.path.open("r+b") as file:
        at = layout.SECTION.read(file.read(section + layout.SECTION.size), section)["offset"]
        file.seek(at + layout.KEEPER.offsets[field])
        file.write(value.to_bytes(8, "little"))


@pytest.mark.parametrize(
    "lies",
    [
        {"text_bytes": (1 << 64) - 1, "text_number": 1},
        {"text_bytes": 8193, "text_number": 1},
        {"text_bytes": 5, "text_number": 1},
        {"text_bytes": 8192, "text_number": 1},
    ],
    ids=json.dumps,
)
def test_a_lying_page_is_not_believed(begin: Callable[..., Agent], lies: dict[str, int]) -> None:
    end, stderr = os.pipe()
    agent = begin(stderr=stderr)
    agent.do(SPEAKS)
    for field, value in lies.items():
        overwrite(agent, field, value)
    agent.do("stall()")
    written(agent, 1)
    assert open_keeper(str(agent.path)).say(b"the truth\n")
    assert read_some(end, 10) == b"the truth\n"
    os.close(end)
    os.close(stderr)


def test_numbers_out_of_order_are_no_text(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    agent.do(SPEAKS)
    overwrite(agent, "text_number", 7)
    overwrite(agent, "closed", 1)
    agent.do("stall()")
    agent.do("native.ring_keeper()")
    assert counters(agent)["texts_dropped"] == counters(agent)["texts_written"] == 0
    assert agent.do("native.end_with_keeper(0.01)") is False


def test_a_fork_finds_no_thread_beside_it(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    place.listens()
    agent.do("stall()")
    assert agent.do("native.ring_keeper()") is True
    assert agent.do("native.pause(60.0)") == 2
    assert agent.do("native.resume()") is None
    # A slot is not taken: both are back.
    assert agent.do("native.pause(60.0)") == 2


def test_a_child_lets_go_of_the_line(begin: Callable[..., Agent], place: Place) -> None:
    agent = begin()
    place.set_in(agent)
    bell = place.listens()
    agent.do("stall()")
    rung(bell)
    child = "(native.forget_after_fork(), os._exit(native.ring_keeper() + native.end_with_keeper(3600.0)))"
    agent.do(f"!pid = os.fork(); pid or {child}")
    assert agent.do("os.waitpid(pid, 0)[1]") == 0
    assert agent.do("native.ring_keeper()") is True
