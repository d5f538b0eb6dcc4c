"""Root writes in another user's store: as that user, for good, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.root.conftest import NOBODY, seen

from loopcanary import keeper, whose_folder
from loopcanary.cli.opening import become_owner
from loopcanary.model.search import IssueQuery
from loopcanary.store import Store
from loopcanary.ui.live import Sight, Watch

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="is about root on Linux"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

CLEAN = """
import os, sys
from loopcanary import whose_folder
from loopcanary.cli.command_line import run_command
whose_folder._is_readable = lambda: True  # what the other user may not read is loaded by the first command
run_command(["clean", "--all", "--yes", "--store", sys.argv[1]])
status = run_command(["clean", "--all", "--yes"])
print(os.getresuid(), os.getresgid(), os.getgroups(), status)
try:
    os.setuid(0)
except PermissionError:
    print("for good")
"""


def test_a_command_that_writes_becomes_the_owner_for_good(theirs, store, root):
    mine = Store(root / "mine")
    mine.open()
    mine.close()
    words = [sys.executable, "-c", CLEAN, str(mine.folder)]
    done = subprocess.run(words, cwd=theirs, capture_output=True, text=True, check=True, timeout=280)
    group = NOBODY
    told = f"{(NOBODY,) * 3} {(group,) * 3} [] 0\nfor good\n"
    assert done.stdout.endswith(f"Deleted 1 stall.\n{told}"), done
    assert {path.lstat().st_uid for path in store.rglob("*")} == {NOBODY}


MAKE = """
import os
from loopcanary import whose_folder
from loopcanary.cli.command_line import run_command

def become(folders, become_owner=whose_folder.become_owner):
    become_owner(folders)
    print(os.getresuid(), os.getresgid(), flush=True)
    os._exit(0)  # the other user may not read what comes next

whose_folder._is_readable = lambda: True
whose_folder.become_owner = become
run_command({words})
"""
WRITING = {
    "clean": ("clean", "--all", "--yes"),
    "keep": ("keep", ".loopcanary"),
    "keep --apart": ("keep", "--apart", ".loopcanary"),
    "import": ("import", "-"),
    "bundle --delete": ("bundle", "--send", "http://127.0.0.1:1/", "--delete"),
}


@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_one_line_says_that_root_cannot_become_the_owner(theirs, store, words):
    dropped = "-setuid,-setgid,-sys_ptrace"
    command = [
        "setpriv",
        "--bounding-set",
        dropped,
        "--inh-caps",
        dropped,
        sys.executable,
        "-P",
        "-m",
        "loopcanary",
    ]
    before = seen(theirs)
    done = subprocess.run(
        [*command, *words], cwd=theirs, input="", capture_output=True, text=True, check=False, timeout=280
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"belongs to user {NOBODY}" in done.stderr
    assert seen(theirs) == before


@pytest.mark.parametrize("words", [("import", "-"), ("keep",)], ids=" ".join)
@pytest.mark.parametrize("name", ["new", "deep/new"])
def test_a_store_that_is_made_is_the_folders_owners(theirs, words, name):
    program = MAKE.format(words=[*words, "--store", str(theirs / name)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd="/",
        input="",
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    assert done.stdout == f"{(NOBODY,) * 3} {(NOBODY,) * 3}\n", done
    assert {path.lstat().st_uid for path in theirs.rglob("*")} <= {NOBODY}


def test_root_stays_root_for_a_store_of_its_own_in_another_users_folder(theirs):
    (theirs / "mine").mkdir(mode=0o700)
    whose_folder.become_owner([str(theirs / "mine"), str(theirs / "mine/new")])
    assert os.getresuid() == (0, 0, 0)


def test_stores_of_two_users_are_not_written_together(loopcanary, theirs, store, root):
    with closing(Store(root / "mine")) as mine:
        mine.open()
    done = loopcanary("clean", "--all", "--yes", "--store", str(store), "--store", str(root / "mine"))
    assert done.returncode == 2
    assert done.stderr == "loopcanary: the stores belong to different users: name those of one user\n"


def test_a_button_of_the_pages_becomes_the_owner(store, monkeypatch):
    monkeypatch.setattr(whose_folder, "_is_readable", lambda: True)
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            mine = Store(store)
            watch = Watch([mine], lambda _: Sight(), (Exception,), lambda: become_owner([mine]))
            watch.now()
            before = mine.reader.totals(IssueQuery()).issues, os.geteuid()
            watch.change(lambda one: one.maintenance.delete(IssueQuery()))
            after = mine.reader.totals(IssueQuery()).issues, os.geteuid()
            os.write(write, f"{before} {after}".encode())
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert told.read() == f"(1, 0) (0, {NOBODY})"
    os.wait()


def test_the_time_of_a_file_that_a_link_leads_to_stays(root, victim):
    """Root's keeper gives its seat back, in a store that others may write to."""
    from loopcanary.keeper.seat import Seat

    store = root / "store"
    (store / "keeper").mkdir(parents=True)
    target = victim / "file"
    target.write_text("root's")
    os.utime(target, (10**9, 10**9))
    Path(keeper.log_path(str(store))).symlink_to(target)
    seat = Seat(str(store))
    assert seat.take()
    seat.give_back()
    assert target.stat().st_mtime == 10**9


@pytest.mark.parametrize("make", ["link", "folder"])
def test_a_keeper_folder_of_another_user_is_no_seat(root, victim, make):
    from loopcanary.keeper.seat import Seat

    store = root / "store"
    store.mkdir()
    if make == "link":
        (store / "keeper").symlink_to(victim)
        os.lchown(store / "keeper", NOBODY, NOBODY)
    else:
        (store / "keeper").mkdir()
        os.chown(store / "keeper", NOBODY, NOBODY)
    with pytest.raises(OSError, match="No such file"):
        Seat(str(store)).take()
    assert [*victim.iterdir()] == []
