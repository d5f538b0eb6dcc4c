"""Where stalls and flight files go when the usual place cannot be had."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from loopcanary.engine import flight_place

from .watching import PATIENT_END, PATIENT_FORKS, PRELUDE

pytestmark = pytest.mark.native


@pytest.fixture
def small_disk(tmp_path):
    """A filesystem of a given size."""
    mounted = []

    def make(size: str) -> Path:
        folder = tmp_path / f"disk-{size}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "loopcanary-test", folder]
        if (
            shutil.which("mount") is None
            or subprocess.run(command, capture_output=True, check=False).returncode
        ):
            pytest.skip("may not mount a filesystem")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def with_shared_memory_in(folder: Path) -> str:
    return f"""
    from pathlib import Path
    from loopcanary.engine import recorder
    recorder.candidates.__defaults__ = ({str(folder)!r},)
    """


def in_shared_memory() -> set[str]:
    """Names of flight files, whosever they are."""
    return {path.name for path in flight_place.SHARED_MEMORY.glob("loopcanary-*")}


def test_stalls_are_shown_without_a_store(place):
    (place.folder / "file").touch()
    nowhere = f"{place.folder}/file/store"  # no folder can be made below a file, not even by root
    program = place.program("""
        import loopcanary
        stall("first")
        stall("second")
        print(loopcanary.install().backend.name, os.getpid(), flush=True)
        if len(sys.argv) > 1:
            os.kill(os.getpid(), 9)
    """)
    before = in_shared_memory()
    done = place.run(program, LOOPCANARY_STORE=nowhere, LOOPCANARY_CONSOLE="1")
    assert done.stdout.startswith("native ")
    assert [name for name in ("first", "second") if f" in {name}" in done.stderr] == ["first", "second"]
    # One line says that nothing is stored, and names the place that is wrong.
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("loopcanary: store failed")]
    assert nowhere in said
    killed = place.run(program, "killed", status=-9, LOOPCANARY_STORE=nowhere)
    pids = {done.stdout.split()[1], killed.stdout.split()[1]}
    assert not [name for name in in_shared_memory() - before if pids & set(name.split("-"))]


def test_without_shared_memory_the_flight_file_lies_in_the_store(place):
    program = place.program(
        with_shared_memory_in(place.folder / "nothing")
        + """
    stall("first")
    (path,) = Path(os.environ["LOOPCANARY_STORE"], "flight").glob("*.flight")
    assert path.is_file() and not path.is_symlink()
    stall("killed_in", 60) if len(sys.argv) > 1 else None
    """
    )
    assert place.run(program).stderr == ""
    assert place.culprits() == ["first"]
    assert place.left_behind() == []


@pytest.mark.parametrize("size", ["16k", "64k", "4m"])
def test_shared_memory_that_is_full(place, small_disk, size):
    program = place.program(
        with_shared_memory_in(small_disk(size))
        + """
    stall("first")
    (path,) = Path(os.environ["LOOPCANARY_STORE"], "flight").glob("*.flight")
    assert path.is_file() and not path.is_symlink()
    """
    )
    assert place.run(program).stderr == ""
    assert place.culprits() == ["first"]
    assert not list((place.folder / f"disk-{size}").iterdir())


def test_shared_memory_that_fills_up_on_the_way(place, small_disk):
    """A lane or a slot for which there is no room is refused and counted; nothing is a SIGBUS."""
    disk = small_disk("8m")
    program = place.program(
        with_shared_memory_in(disk)
        + """
    import loopcanary
    stall("first")
    with open(sys.argv[1] + "/filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    async def blocks_without_a_lane():
        time.sleep(0.15)
    loop = threading.Thread(target=asyncio.run, args=[blocks_without_a_lane()])
    loop.start()
    loop.join()
    stall("third")
    print(loopcanary.statistics()["lanes_refused"])
    """
    )
    done = place.run(program, disk, LOOPCANARY_KEEPER="0")  # which looks into the real one
    assert done.stderr == ""
    assert int(done.stdout) == 1
    assert place.culprits() == ["first", "third"]


@pytest.mark.parametrize("keeper", ["1", "0"], ids=["kept", "in the program"])
def test_a_disk_that_is_full(place, small_disk, keeper):
    """The store has no room: told once, counted, and the program goes on."""
    disk = small_disk("128k")
    (disk / "filler").write_bytes(bytes(120 << 10))
    program = place.program("""
        import loopcanary
        stall("first")
        stall("second")
        loopcanary.uninstall()
        print("over")
    """)
    done = place.run(program, LOOPCANARY_STORE=str(disk / "store"), LOOPCANARY_KEEPER=keeper)
    assert done.stdout == "over\n"
    lines = done.stderr.splitlines()
    assert len(lines) == 1 or (keeper == "1" and not lines)  # a program waits a second for its keeper
    for line in lines:
        assert line.startswith(
            "loopcanary: store failed; while it fails, stalls are shown but not stored; "
            "the next report may have the first ones: StoreError: "
        )
    # What could not be stored waits for room.
    (disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
    assert place.culprits(disk / "store") == ["first", "second"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_a_folder_that_cannot_be_written(place, public_folder):
    program = place.program(
        """
        import difflib, encodings.ascii, loopcanary
        loopcanary.install(store=sys.argv[2])
        stall("before")  # loads what another user may not read
        loopcanary.uninstall()
        os.chdir(sys.argv[1])
        os.setgid(65534)
        os.setuid(65534)
        loopcanary.install()
        stall("first")
        if os.fork() == 0:
            stall("child")
            sys.exit(0)
        os.wait()
    """,
        prelude=PRELUDE + PATIENT_FORKS,
    )
    readable, state = public_folder / "readable", public_folder / "state"
    readable.mkdir()
    state.mkdir()
    state.chmod(0o777)
    # What another user may not read is loaded without a keeper only.
    settings = {
        "LOOPCANARY": "",
        "LOOPCANARY_KEEPER": "0",
        "LOOPCANARY_STORE": "",
        "XDG_STATE_HOME": str(state),
    }
    done = place.run(program, readable, place.store, **settings)
    told = [line for line in done.stderr.splitlines() if line.startswith("loopcanary: ")]
    assert told == [f"loopcanary: {readable} cannot be written: stalls are stored in {state / 'loopcanary'}"]
    assert place.culprits(state / "loopcanary") == ["child", "first"]


def test_a_store_that_is_a_file(place):
    place.store.write_text("mine")
    done = place.run(place.program("stall('first'); stall('second'); print('over')"))
    assert done.stdout == "over\n"
    (line,) = done.stderr.splitlines()
    assert str(place.store) in line
    assert place.store.read_text() == "mine"


def test_a_store_of_a_newer_version(place):
    place.run(place.program("stall('first')"), LOOPCANARY_KEEPER="0")  # which would have it open
    with sqlite3.connect(place.store / "loopcanary.db") as database:
        database.execute("PRAGMA user_version = 1000")
    database.close()
    before = (place.store / "loopcanary.db").read_bytes()
    program = place.program("stall('second'); stall('third'); print('over')", prelude=PRELUDE + PATIENT_END)
    done = place.run(program)
    assert done.stdout == "over\n"
    (line,) = done.stderr.splitlines()
    assert "newer loopcanary" in line
    assert "upgrade loopcanary or choose another --store" in line
    assert (place.store / "loopcanary.db").read_bytes() == before


def test_a_database_that_is_damaged(place):
    place.run(place.program("stall('first')"), LOOPCANARY_KEEPER="0")  # which would have it open
    database = place.store / "loopcanary.db"
    database.write_bytes(b"no database" + database.read_bytes()[11:])
    place.run(place.program("stall('second')"))
    assert place.culprits() == ["second"]
    assert len(list(place.store.glob("loopcanary.db.damaged-*"))) == 1


def test_32_processes_share_one_store(place):
    program = place.program("""
        import loopcanary
        stall("before")
        read, write = os.pipe()
        for number in range(32):
            if os.fork() == 0:
                os.close(write)
                os.read(read, 1)
                stall(f"child_{number}")
                sys.exit(0)
        os.close(write)  # all at once
        failed = sum(os.wait()[1] != 0 for _ in range(32))
        assert failed == 0, failed
    """)
    done = place.run(program)
    # Forked while the drain had the store open, which a busy machine can make last: such children say so.
    watched = 33 - done.stderr.count("this child process is not watched")
    assert watched > 1
    # On a busy machine some end before they have stored, and leave their file, which another start may have
    # claimed and not got to store either: it is taken in when the claim is old.
    place.take_in_all()
    # A claim on a file that its own process removed after all is a link to nothing.
    assert [name for name in place.left_behind() if (place.store / "flight" / name).exists()] == []
    assert len(place.sessions()) == watched
    # There, too, waiting for a core may outweigh the block in its stall, so that it is told by its length
    # rather than by its culprit.
    assert len({stall.session for stall in place.stalls() if stall.duration_ns >= 150_000_000}) == watched
    known = {"before", *(f"child_{number}" for number in range(32))}
    assert {name for name in place.culprits() if name.startswith(("before", "child"))} <= known


def test_no_file_is_left_in_shared_memory(place):
    before = in_shared_memory()
    program = place.program("stall('first'); print(os.getpid())", prelude=PRELUDE + PATIENT_END)
    pid = place.run(program).stdout.strip()
    assert not [name for name in in_shared_memory() - before if f"-{pid}-" in name]
