"""What is no flight file is refused with one line that says what, where and what next."""

from __future__ import annotations

import gc
import os
import stat
import sys
from pathlib import Path

import pytest
from tests.building.evidence import stall
from tests.building.flight_file import FlightBuilder

from loopcanary.flight import FlightError, FlightFile
from loopcanary.flight import format as layout
from loopcanary.flight import source as source_module
from loopcanary.flight.format import SectionKind, TakenBy

OPEN_FILES = Path("/proc/self/fd")

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")


@pytest.fixture
def flight():
    flight = FlightBuilder(facts={"name": "shop"})
    flight.add_stall(stall())
    return flight


def refusal(call, *args) -> str:
    with pytest.raises(FlightError) as caught:
        call(*args)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_file_is_read_where_it_lies(tmp_path, flight):
    path = flight.write(tmp_path / "41.flight")

    with FlightFile.open(path) as file:
        assert file.name == str(path)
        assert file.facts() == {"name": "shop"}
        assert file.stalls() == [(0, stall())]


def test_a_buffer_is_read_in_place(flight):
    file = FlightFile(flight.data, name="this process")
    flight.put_header(heartbeat_ns=1_234)

    assert file.header.heartbeat_ns == 1_234
    assert repr(file) == "FlightFile('this process')"


def test_a_closed_file_lets_go_of_its_buffer(flight):
    file = FlightFile(flight.data)
    file.close()
    file.close()

    flight.data.append(0)  # a bytearray that is still looked at refuses this
    assert refusal(file.facts) == "flight buffer: is closed; open it again"


def test_a_refused_buffer_is_let_go_too():
    buffer = bytearray(10)
    refusal(FlightFile, buffer)
    gc.collect()
    buffer.append(0)


@posix
def test_a_closed_file_reads_no_reused_descriptor(tmp_path, flight):
    file = FlightFile.open(flight.write(tmp_path / "41.flight"))
    file.close()

    with (tmp_path / "other").open("wb"):
        assert "is closed" in refusal(file.facts)


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="the system does not list its descriptors")
def test_no_descriptor_is_left_open(tmp_path, flight):
    good = flight.write(tmp_path / "good")
    bad = tmp_path / "bad"
    bad.write_bytes(b"no flight file at all")
    gc.collect()  # what other tests left, and hold open
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(3):
        FlightFile.open(good).close()
        refusal(FlightFile.open, bad)
        refusal(FlightFile.open, tmp_path)

    assert len(list(OPEN_FILES.iterdir())) == before


def test_a_missing_file(tmp_path):
    assert refusal(FlightFile.open, tmp_path / "gone").endswith(
        "gone: cannot be opened: No such file or directory"
    )


def test_a_path_with_a_nul():
    assert "cannot be opened" in refusal(FlightFile.open, "a\0b")


def test_control_characters_of_a_path_are_not_printed(tmp_path):
    line = refusal(FlightFile.open, tmp_path / "a\n\x1b[31mb")

    assert line.isprintable()
    assert "a\\n\\x1b[31mb" in line


def test_the_error_keeps_path_and_reason_apart():
    error = FlightError("/run/x", "is none")

    assert (error.path, error.what, str(error)) == ("/run/x", "is none", "/run/x: is none")


@posix
def test_a_symbolic_link(tmp_path, flight):
    link = tmp_path / "link"
    link.symlink_to(flight.write(tmp_path / "real"))

    assert "is a symbolic link; name the flight file itself" in refusal(FlightFile.open, link)


@posix
def test_a_fifo_does_not_hold_us_up(tmp_path):
    os.mkfifo(tmp_path / "fifo")

    assert "is not a regular file" in refusal(FlightFile.open, tmp_path / "fifo")


@posix
def test_a_folder_and_a_device(tmp_path):
    assert "is not a regular file" in refusal(FlightFile.open, tmp_path)
    assert "is not a regular file" in refusal(FlightFile.open, "/dev/null")


@pytest.fixture
def ownership(monkeypatch):
    """Makes every file belong to one user and be read by another."""

    def pretend(*, reader: int, owner: int) -> None:
        real = os.fstat

        def as_owned(fd):
            facts = list(real(fd))
            facts[stat.ST_UID] = owner
            return os.stat_result(facts)

        monkeypatch.setattr(os, "geteuid", lambda: reader)
        monkeypatch.setattr(os, "fstat", as_owned)

    return pretend


@posix
@pytest.mark.parametrize(
    ("reader", "owner"),
    [(1000, 1000), (1000, 0), (0, 1001)],
    ids=["one's own", "root's", "another's, by root"],
)
def test_whose_files_are_read(tmp_path, flight, ownership, reader, owner):
    path = flight.write(tmp_path / "41.flight")
    ownership(reader=reader, owner=owner)

    FlightFile.open(path).close()


@posix
def test_another_users_file_is_not_read(tmp_path, flight, ownership):
    path = flight.write(tmp_path / "41.flight")
    ownership(reader=1000, owner=1001)

    line = refusal(FlightFile.open, path)
    assert line.endswith("belongs to user 1001, not to you (user 1000); read it as that user or as root")


@posix
def test_a_file_beyond_all_size_is_refused_unread(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: takes no room

    assert f"has {1 << 40} bytes, more than a flight file can have" in refusal(FlightFile.open, path)


@posix
def test_a_file_cut_short_while_it_is_read(tmp_path, flight):
    path = flight.write(tmp_path / "41.flight")
    with FlightFile.open(path) as file:
        os.truncate(path, layout.HEADER_BYTES + 100)

        assert "was cut short while it was read" in refusal(file.stalls)


@posix
def test_an_unreadable_disk(tmp_path, flight, monkeypatch):
    file = FlightFile.open(flight.write(tmp_path / "41.flight"))

    def fails(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fails)

    assert refusal(file.facts).endswith("Input/output error")
    file.close()


def test_a_system_without_pread_reads_a_copy(tmp_path, flight, monkeypatch):
    monkeypatch.delattr(source_module.os, "pread", raising=False)

    with FlightFile.open(flight.write(tmp_path / "41.flight")) as file:
        assert file.stalls() == [(0, stall())]


# ---- contents ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is empty"),
        (bytes(8192), "has no header yet"),
        (b"LCFL", "begins with b'LCFL', not b'LCFLIGHT'; it is not a flight file"),
        (b"\x7fELF" + bytes(8192), "it is not a flight file"),
        (b"LCFLIGHT" + bytes(100), "is cut short to 108 bytes, less than its header's 4096"),
        (b"LCFLIGHT" + bytes(8192), "has byte order mark 0x00000000, not 0x01020304"),
    ],
    ids=["empty", "zeros", "four bytes", "another format", "half a header", "magic alone"],
)
def test_what_is_no_flight_file(data, what):
    assert what in refusal(FlightFile, data)


def test_a_file_of_the_future():
    line = refusal(FlightFile, bytes(FlightBuilder(version=7)))

    assert line == "flight buffer: written by a newer loopcanary (format 7); upgrade to read it"


def test_a_file_of_the_past():
    line = refusal(FlightFile, bytes(FlightBuilder(version=0)))

    assert line == "flight buffer: has format 0, not 1 to 2; read it with the loopcanary that wrote it"


def test_a_file_of_the_other_byte_order():
    line = refusal(FlightFile, bytes(FlightBuilder(byte_order=0x04030201, version=0x01000000)))

    assert "written on a machine of another byte order" in line


@pytest.mark.parametrize("kind", SectionKind)
@pytest.mark.parametrize("stride", [0, 1 << 30, (1 << 64) - 1])
def test_elements_of_an_impossible_size(kind, stride):
    flight = FlightBuilder()
    flight.put_section(kind, stride=stride)

    assert f"the {kind.name.lower()} section has elements of {stride} bytes" in refusal(
        FlightFile, bytes(flight)
    )


@pytest.mark.parametrize("kind", SectionKind)
@pytest.mark.parametrize("offset", [0, 8, 5001, 1 << 40, (1 << 64) - 8])
def test_a_section_that_does_not_lie_in_the_file_is_empty(kind, offset, flight):
    flight.put_section(kind, offset=offset)
    flight.put_header(takes=TakenBy.KEEPER)
    flight.put_keeper(taken={0: stall().serial})
    file = FlightFile(bytes(flight))

    answers = {
        SectionKind.FACTS: file.facts,
        SectionKind.COUNTERS: lambda: [name for name, count in file.counters().items() if count],
        SectionKind.GC: file.collections,
        SectionKind.LANES: file.lanes,
        SectionKind.SLOTS: file.stalls,
        SectionKind.KEEPER: lambda: not file.stalls(),
    }
    assert not answers[kind]()


def test_a_file_that_lost_its_end_gives_what_it_has_left():
    flight = FlightBuilder(facts={"name": "shop"})
    flight.add_stall(stall())
    flight.add_stall(stall(serial=4))
    cut = bytes(flight)[: flight.at(SectionKind.SLOTS, 1) + 1000]
    file = FlightFile(cut)

    assert file.slot_count == 1
    assert file.stalls() == [(0, stall())]


@pytest.mark.parametrize("index", [-1, 3, 1 << 70])
def test_a_slot_that_is_not_there(flight, index):
    line = refusal(FlightFile(bytes(flight)).slot_evidence, index)

    assert line == f"flight buffer: has 3 slots; there is no number {index} among them"


def test_a_buffer_that_is_not_contiguous(flight):
    assert "give a contiguous buffer" in refusal(FlightFile, memoryview(bytes(flight))[::2])
