"""A program that runs as root in another user's folder: where it stores, and which settings it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.building.stalls import STALL
from tests.root.conftest import NOBODY, OTHER, as_nobody, seen

from loopcanary.assembly.roots_sources import RootsSources
from loopcanary.cli.ci_settings import CiSettings, ci_settings
from loopcanary.config import BY_KEY, ConfigError, load, usual_store
from loopcanary.flight import FlightError, FlightFile
from loopcanary.model.config import Config
from loopcanary.model.search import STALLS
from loopcanary.report.ci.budget import Budget
from loopcanary.reporters.log_file import LogFile
from loopcanary.source_text import FileSources
from loopcanary.store import Location, Store, find, locate

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="is about root on Linux"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

PROGRAM = """
import asyncio, sys, time

async def main():
    await asyncio.sleep(0)
    print("begun", flush=True)
    sys.stdin.readline()
    time.sleep(float(sys.argv[1]))
    await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.fixture
def program(theirs: Path, root: Path):
    """Starts a program that stalls for a time."""
    file = root / "program.py"
    file.write_text(PROGRAM)

    def start(stall_s: float, **settings: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-P", "-m", "loopcanary", "run", str(file), str(stall_s)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, cwd=theirs, env={**os.environ, **settings}, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    return start


def ran(process: subprocess.Popen[str]) -> str:
    """What the program said of itself on stderr."""
    _, told = process.communicate("\n", timeout=280)
    assert process.returncode == 0
    return told


def has_stall(folder: Path, loopcanary: Callable[..., object]) -> bool:
    """Whether the store has one, once `report` has taken in what no keeper has stored. A busy machine makes
    more of them."""
    loopcanary("report", "--store", str(folder))
    one = Store(folder)
    found = one.reader.totals(STALLS).issues
    one.close()
    return found >= 1


@pytest.mark.native
@pytest.mark.parametrize("keeper", ["0", "1"], ids=["without a keeper", "with one"])
def test_a_store_that_is_made_is_roots_own(program, theirs, loopcanary, keeper):
    assert "another user" not in ran(program(0.3, LOOPCANARY_KEEPER=keeper))
    assert has_stall(theirs / ".loopcanary", loopcanary)
    facts = (theirs / ".loopcanary").stat()
    assert (facts.st_uid, facts.st_mode & 0o777) == (0, 0o700)
    assert {path.lstat().st_uid for path in theirs.rglob("*")} == {0}


@pytest.mark.native
@pytest.mark.parametrize("kind", ["theirs", "link", "open"])
def test_a_store_that_is_not_roots_alone_is_not_used(program, theirs, victim, root, *, loopcanary, kind):
    place = theirs / ".loopcanary"
    if kind == "link":
        as_nobody(lambda: place.symlink_to(victim))
    elif kind == "theirs":
        as_nobody(place.mkdir)
    else:
        place.mkdir()
        place.chmod(0o755)
    before, other = seen(theirs), root / ".local/state/loopcanary"
    told = ran(program(0.3))
    assert f"loopcanary: other users can change {place}: stalls are stored in {other}" in told
    assert seen(theirs) == before
    assert [*victim.iterdir()] == []
    assert has_stall(other, loopcanary)


@pytest.mark.native
def test_a_store_that_is_named_and_another_users_is_not_used(program, theirs, root, loopcanary):
    as_nobody((theirs / "stalls").mkdir)
    told = ran(program(0.3, LOOPCANARY_STORE=str(theirs / "stalls")))
    assert f"other users can change {theirs / 'stalls'}" in told
    assert [*(theirs / "stalls").iterdir()] == []
    assert has_stall(root / ".local/state/loopcanary", loopcanary)


@pytest.mark.native
def test_a_store_that_is_replaced_beside_the_program(program, theirs, victim):
    process = program(1.3)
    assert process.stdout.readline() == "begun\n"
    away = theirs / "away"

    def replace() -> None:
        (theirs / ".loopcanary").rename(away)
        (theirs / ".loopcanary").symlink_to(victim)

    as_nobody(replace)
    before = seen(victim)
    ran(process)
    assert seen(victim) == before
    # Its hang was copied to where it had opened the folder, or a keeper has taken that in.
    assert {path.name for path in away.iterdir()} >= {"flight"}


def test_roots_state_folder_is_not_what_sudo_left_in_home(theirs, monkeypatch):
    monkeypatch.setenv("HOME", str(theirs))
    as_nobody((theirs / ".loopcanary").mkdir)
    assert locate(cwd=theirs).folder == Path("~root/.local/state/loopcanary").expanduser()


def test_commands_find_the_store_of_another_user(store, theirs):
    assert find(cwd=theirs).folder == store


@pytest.fixture
def usual(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store's usual place, in a folder of the ordinary user's, and open to all."""
    monkeypatch.chdir(theirs)
    monkeypatch.setenv("XDG_STATE_HOME", str(theirs / "state"))
    place = theirs / ".loopcanary"
    place.mkdir()
    place.chmod(0o777)
    return place


@pytest.mark.parametrize("put", ["folder", "link", "root's"])
def test_an_ordinary_user_stores_nothing_in_a_folder_that_another_made(usual, put):
    if put == "link":
        usual.rename(usual.parent / "mine")
        usual.symlink_to("mine")
        os.chown(usual, NOBODY, NOBODY)

    def work() -> bool:
        other = usual.parent / "state/loopcanary"
        told = f"{usual} belongs to another user: stalls are stored in {other}"
        assert usual_store(Config()) is None
        assert (locate().folder, locate().notice) == (other, told)
        assert locate(usual) == find(usual) == Location(folder=usual)
        return find().folder == other

    assert as_nobody_owning(usual, 0 if put == "root's" else OTHER, work)


@pytest.mark.parametrize("put", ["folder", "link", "nothing"])
def test_an_ordinary_user_stores_in_a_folder_of_ones_own(usual, put):
    def work() -> bool:
        assert usual_store(Config()) == str(usual)
        return locate() == find() == Location(folder=usual)

    if put == "link":
        usual.rename(usual.parent / "mine")
        os.chown(usual.parent / "mine", NOBODY, NOBODY)
        usual.symlink_to("mine")
    elif put == "nothing":
        usual.rmdir()
    owned = usual.parent if put == "nothing" else usual
    os.lchown(owned, NOBODY, NOBODY)
    as_nobody(lambda: None if work() else os._exit(1))


@pytest.mark.parametrize("put", ["link", "folder", "other name", "theirs", "pipe"])
def test_a_log_file_in_another_users_folder_leads_nowhere_else(theirs, victim, put):
    logs = theirs / "logs"
    as_nobody(logs.mkdir)
    target, file = victim / "target", logs / "stalls.jsonl"
    target.write_text("root's\n")
    if put == "link":
        as_nobody(lambda: file.symlink_to(target))
    elif put == "folder":
        logs.rmdir()
        as_nobody(lambda: logs.symlink_to(victim))
    elif put == "other name":
        file.hardlink_to(target)
    else:
        as_nobody(lambda: file.touch(0o600) if put == "theirs" else os.mkfifo(file))
    before = seen(theirs), seen(victim)
    reporter = LogFile(file, process="shop", host="here")
    reporter.report(STALL, 1)
    assert reporter.counts() == {"log_file_dropped": 1}
    assert (seen(theirs), seen(victim)) == before


def test_a_log_file_of_roots_in_another_users_folder_is_written(theirs):
    reporter = LogFile(theirs / "stalls.jsonl", process="shop", host="here")
    for _ in range(3):
        reporter.report(STALL, 1)
    assert reporter.counts() == {}
    facts = {path.name: (path.stat().st_uid, path.stat().st_mode & 0o777) for path in theirs.iterdir()}
    assert facts == {"stalls.jsonl": (0, 0o600)}


# ---- settings -----------------------------------------------------------------------------------

ACTING = {
    "store": "elsewhere",
    "flight_dir": "elsewhere",
    "log_file": "elsewhere/log",
    "webhook_file": "elsewhere/address",
    "notify": ["desktop"],
    "exit_when_hung": "1s",
    "fail_on_stall": True,
    "retention": "1s, 1KiB",
    "sd_watchdog": True,
    "signals": ["SIGTERM"],
}


@pytest.fixture
def settings(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The other user's file, in the current folder."""
    for name in [name for name in os.environ if name.startswith("LOOPCANARY")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(theirs)
    monkeypatch.setattr("loopcanary.config._logged", set())
    lines = [f"{key} = {json.dumps(value)}" for key, value in ACTING.items()]
    file = theirs / "loopcanary.toml"
    as_nobody(lambda: file.write_text("\n".join(['threshold = "50ms"', *lines])))
    return file


def acting() -> set[str]:
    """Those settings in force that act, and are not the defaults."""
    config = load()
    return {key for key in ACTING if getattr(config, (field := BY_KEY[key]).attribute) != field.default}


def as_nobody_owning(file: Path, owner: int, work: Callable[[], bool]) -> bool:
    """What the work says in a child of an ordinary user, where the file (or link) is the owner's."""
    os.lchown(file, owner, owner)
    said = file.parent / "said"
    as_nobody(lambda: said.touch() if work() else None)
    found = said.exists()
    said.unlink(missing_ok=True)
    return found


def test_settings_that_act_are_not_taken_from_another_users_file(settings, caplog):
    assert load().threshold_ns == 50_000_000
    assert acting() == set()
    [told] = {record.message for record in caplog.records}
    path, keys, rest = told.split(": ")
    assert (path, {*keys.split(", ")}) == (str(settings), {*ACTING})
    assert rest == (
        f"ignored, as another user can change this file; to use all, set "
        f"LOOPCANARY_TRUST={settings.parent} in the environment, or `run --config {settings}`"
    )


@pytest.mark.parametrize("levels", [0, 1])
def test_settings_of_a_trusted_folder_are_taken(settings, monkeypatch, levels):
    monkeypatch.setenv("LOOPCANARY_TRUST", str(settings.parents[levels]))
    assert acting() == ACTING.keys()


def test_a_trusted_folder_is_not_one_whose_name_begins_alike(settings, monkeypatch):
    monkeypatch.setenv("LOOPCANARY_TRUST", str(settings.parent)[:-1])
    assert acting() == set()


def test_roots_file_in_another_users_folder_is_theirs(settings):
    """The other user can put another file of root's in its place."""
    os.chown(settings, 0, 0)
    assert acting() == set()


@pytest.mark.parametrize(("owner", "taken"), [(NOBODY, True), (0, True), (OTHER, False)])
def test_an_ordinary_user_takes_all_of_files_of_root_and_of_ones_own(settings, monkeypatch, owner, taken):
    below = settings.parent / "project"
    as_nobody(below.mkdir)
    monkeypatch.chdir(below)
    wanted = set(ACTING) if taken else set()
    assert as_nobody_owning(settings, owner, lambda: acting() == wanted)
    assert as_nobody_owning(settings, owner, lambda: load().threshold_ns == 50_000_000)


def test_an_ordinary_user_can_trust_another(settings, monkeypatch):
    monkeypatch.setenv("LOOPCANARY_TRUST", str(settings.parent))
    assert as_nobody_owning(settings, OTHER, lambda: acting() == ACTING.keys())


@pytest.mark.parametrize(("owner", "taken"), [(NOBODY, True), (0, True), (OTHER, False)])
def test_an_ordinary_user_follows_links_of_root_and_of_ones_own(settings, owner, taken):
    settings.rename(settings.parent / "shared.toml")
    settings.symlink_to("shared.toml")
    wanted = set(ACTING) if taken else set()
    assert as_nobody_owning(settings, owner, lambda: acting() == wanted)


@pytest.mark.parametrize("put", ["link", "pipe", "device", "large"])
@pytest.mark.parametrize("name", ["loopcanary.toml", "pyproject.toml"])
def test_a_settings_file_that_is_no_plain_file_is_not_read(settings, root, put, name):
    file = settings.parent / name
    settings.unlink()
    (root / "mine.toml").write_text('threshold = "70ms"\n[tool.loopcanary]\nthreshold = "70ms"')
    if put == "link":
        file.symlink_to(root / "mine.toml")
    elif put == "device":
        file.symlink_to("/dev/zero")
    elif put == "pipe":
        os.mkfifo(file)
    else:
        file.write_text(f'threshold = "70ms" #{"x" * (1 << 20)}\n[tool.loopcanary]\nthreshold = "70ms"')
    os.lchown(file, OTHER, OTHER)
    below = settings.parent / "below"  # has a file, so that the search begins
    below.mkdir()
    (below / "pyproject.toml").touch()
    os.chdir(below)  # the fixture changes it back
    for work in (lambda: load().threshold_ns == 100_000_000, lambda: ci_settings(str(below)) == CiSettings()):
        assert work()
        assert as_nobody_owning(file, OTHER, work)


@pytest.mark.parametrize(
    "text",
    [
        *("treshold = 1", "threshold =", "threshold = 1", 'sample_delay = "2s"', "store = 1"),
        *('"\\u001b[31m" = 1', f"a{'.a' * 30_000} = 1", f"#{'x' * 70_000}"),
    ],
    ids=["unknown", "no TOML", "unfit", "conflict", "not taken", "escape", "dots", "large"],
)
@pytest.mark.parametrize("is_root", [True, False])
def test_another_users_file_keeps_no_program_from_starting(settings, caplog, text, is_root):
    settings.write_text(text)

    def work() -> bool:
        load()
        [told] = {record.message for record in caplog.records}
        return told.startswith(f"{settings}: ") and told.isprintable()

    assert work() if is_root else as_nobody_owning(settings, OTHER, work)


def test_another_users_threshold_does_not_spoil_ones_own_delay(settings, monkeypatch):
    monkeypatch.setenv("LOOPCANARY_SAMPLE_DELAY", "80ms")
    config = load()
    assert (config.threshold_ns, config.sample_delay_ns) == (50_000_000, None)


def test_what_is_wrong_besides_is_an_error_still(settings):
    settings.write_text("treshold = 1")
    with pytest.raises(ConfigError, match="keyword threshold"):
        load(threshold="soon")


def test_a_program_says_it_once(settings, loopcanary):
    settings.write_text("treshold = 1\nstore = 'x'")
    done = loopcanary("run", "--quiet", "-c", "import loopcanary; print(loopcanary.install())")
    assert done.stdout.startswith("<loopcanary.")
    assert [line.partition(": ")[2][:8] for line in done.stderr.splitlines()] == ["store: i", "treshold"]


def test_only_the_budget_is_taken_from_another_users_file(settings, capsys):
    settings.write_text('[ci]\nnew_bugs = 1\nhtml = "x"\nbaseline = "x"\n')
    assert ci_settings(str(settings.parent)) == CiSettings(budget=Budget(new_bugs=1))
    assert f"{settings}: ci.baseline, ci.html: ignored" in capsys.readouterr().err


def test_a_file_that_is_named_is_taken_whole(settings, loopcanary):
    program = "import loopcanary.config as c; print(c.load().log_file, c.load().threshold_ns)"
    told = loopcanary("run", "--quiet", "--config", "loopcanary.toml", "-c", program)
    assert told.stdout == f"{settings.parent}/elsewhere/log 50000000\n", told.stderr
    assert loopcanary("run", "--quiet", "-c", program).stdout == "None 50000000\n"


def test_a_file_that_is_named_has_to_be_there(loopcanary, theirs):
    done = loopcanary("run", "--config", "none.toml", "-c", "0")
    assert done.returncode == 2
    assert "none.toml: is not a file with settings; name a loopcanary.toml" in done.stderr


def test_a_named_pyproject_needs_its_table(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    with pytest.raises(ConfigError, match="is not a file with settings"):
        load(config=str(tmp_path / "pyproject.toml"))
    (tmp_path / "pyproject.toml").write_text('[tool.loopcanary]\nthreshold = "30ms"\n')
    assert load(config=str(tmp_path / "pyproject.toml")).threshold_ns == 30_000_000


DROPS = """
import asyncio, os, signal, sys, time

async def main():
    await asyncio.sleep(0)
    print("begun", flush=True)
    sys.stdin.readline()
    if sys.argv[2] == "drop":
        os.setgroups([])
        os.setresgid(65_534, 65_534, 65_534)
        os.setresuid(65_534, 65_534, 65_534)
    exec(compile("\\n\\nf(300)", sys.argv[1], "exec"), {"f": time.sleep})

asyncio.run(main())
"""


@pytest.mark.native
@pytest.mark.parametrize("keeps", [False, True], ids=["without a keeper", "with one"])
@pytest.mark.parametrize("drops", [False, True], ids=["root", "no longer root"])
def test_root_quotes_only_what_a_living_program_of_roots_has_shown(root, loopcanary, keeps, drops):
    (root / "program.py").write_text(DROPS)
    (root / "secret.py").write_text("a = 1\nb = 2\nSECRET = 'sesame'\n")
    (root / "secret.py").chmod(0o600)
    os.utime(root / "secret.py", (0, 0))
    command = [sys.executable, "-P", "-m", "loopcanary"]
    pipe = subprocess.PIPE
    keeper = subprocess.Popen([*command, "keep", str(root / "s")], stdout=pipe, text=True) if keeps else None
    if keeper is not None:
        assert keeper.stdout.readline().startswith("at work")
    program = subprocess.Popen(
        [*command, "run", root / "program.py", root / "secret.py", "drop" if drops else "stay"],
        env={**os.environ, "LOOPCANARY_STORE": str(root / "s"), "LOOPCANARY_KEEPER": str(int(keeps))},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )
    program.stdin.write("\n")
    program.stdin.flush()
    if not drops and keeps:
        while "hang" not in (line := program.stderr.readline()):
            assert line  # on a busy machine it is told of others before, and of this one by the courier
    else:
        while not _in_hang(root / "s", program.pid):
            assert program.poll() is None
            time.sleep(0.02)
    program.kill()
    if keeper is not None:
        assert " was killed: " in keeper.stdout.readline()
        keeper.terminate()
        keeper.communicate()
    program.communicate()
    assert has_stall(root / "s", loopcanary)
    is_stored = any(b"SECRET" in path.read_bytes() for path in (root / "s").glob("*.db*"))
    assert is_stored == (keeps and not drops)


def test_beside_the_store_root_quotes_what_everyone_may_read(tmp_path):
    app = tmp_path / "app"
    (app / "web").mkdir(parents=True)
    names = "app/web/view.py", "app/private.py", "elsewhere.py"
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    (app / "private.py").chmod(0o600)
    (app / "link.py").symlink_to(tmp_path / "elsewhere.py")
    os.mkfifo(app / "pipe.py")
    sources = RootsSources(FileSources(), lambda: False, app / ".loopcanary")
    found = {name: sources.read(str(tmp_path / name)) for name in (*names, "app/link.py", "app/pipe.py")}
    assert [name for name, lines in found.items() if lines is not None] == ["app/web/view.py"]


def _in_hang(store: Path, pid: int) -> bool:
    """Whether the program's flight file shows it in a stall, of which there is a stack."""
    for path in (store / "flight").glob(f"*-{pid}-*.flight"):
        with suppress(FlightError, OSError), FlightFile.open(path.resolve()) as file:
            return any(one.samples and one.end_ns is None for _, one in file.stalls())
    return False
