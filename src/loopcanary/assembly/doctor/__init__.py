"""What works here, what does not, and why: for `loopcanary doctor`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from loopcanary import config, store
from loopcanary import keeper as place
from loopcanary.assembly import native_module
from loopcanary.assembly.doctor.loops import loop_facts
from loopcanary.assembly.doctor.plugins import plugin_facts
from loopcanary.assembly.doctor.programs import patches_of as patches_of
from loopcanary.assembly.doctor.programs import program_facts
from loopcanary.assembly.doctor.rights import rights_facts
from loopcanary.assembly.kept import no_keeper
from loopcanary.assembly.store import open_store
from loopcanary.engine.recorder import MEMORY
from loopcanary.facts import cgroup_limits
from loopcanary.model import Config, Stall
from loopcanary.model.config import NATIVE, PORTABLE
from loopcanary.model.search import STALLS, of_type
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of

Row = tuple[str, str, str]

_SELF_TEST = """
import asyncio, time
async def stall():
    time.sleep(0.3)
async def main():
    await asyncio.sleep(0)
    await asyncio.create_task(stall(), name="self-test")
asyncio.run(main())
"""
_SELF_TEST_LINE = 4
_SELF_TEST_S = 60


def doctor_facts(stores: Sequence[Path] = ()) -> Iterator[Row]:
    """(name, `ok` | `off` | `problem`, detail), in the order to be read, each as soon as it is known.
    `stores`: beside the one in use."""
    try:
        settings = config.load()
        wrong = None
    except config.ConfigError as error:
        settings, wrong = Config(), str(error)
    yield "loopcanary", "ok", _package_version()
    yield "python", "ok", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    yield ("settings", "problem", wrong) if wrong else ("settings", "ok", _settings(settings))
    yield from _engine(settings)
    yield from _loops(settings)
    yield _keeper(settings)
    yield from _places(settings)
    yield from rights_facts(settings)
    for folder in stores:
        yield _readable(folder)
        yield from program_facts(folder)
    yield from _telling(settings)
    yield from plugin_facts(settings)
    yield _limits()


def _package_version() -> str:
    try:
        return version("loopcanary")
    except PackageNotFoundError:
        return "not installed: used from a folder on the path"


def _settings(settings: Config) -> str:
    first = format_duration(settings.first_sample_ns)
    return f"threshold {format_duration(settings.threshold_ns)}, first sample after {first}"


# ---- the engine -------------------------------------------------------------------------------


def _engine(settings: Config) -> Iterator[Row]:
    if settings.engine == PORTABLE:
        yield "engine", "off", "portable, because the settings say so"
        yield from _portable()
        return
    reason = _native_obstacle()
    if reason is None:
        native = native_module()
        yield "engine", "ok", f"native; clock: {native.clock_kind()}"
        yield "frames", "ok", "stacks are read without the GIL, also in C calls that hold it"
        return
    status = "problem" if settings.engine == NATIVE else "off"
    yield "engine", status, f"portable, because the native one is not available: {reason}"
    yield from _portable()


def _keeper(settings: Config) -> Row:
    """Who takes the stalls of a program that has these settings, and why."""
    try:
        is_store_usable = store.locate(settings.store).is_usable
    except store.StoreError:
        is_store_usable = False
    is_native = settings.engine != PORTABLE and _native_obstacle() is None
    reason = no_keeper(settings, is_native=is_native, is_store_usable=is_store_usable)
    if reason is None and (problem := place.no_reaper()) is not None:
        return (
            "keeper",
            "off",
            f"stores the stalls of programs if one is running; programs start none: {problem}",
        )
    if reason is None:
        return "keeper", "ok", "stores the stalls of programs, in a process of its own"
    return "keeper", "off", f"each program diagnoses and stores its own stalls, on a thread: {reason}"


def _native_obstacle() -> str | None:
    """Why the native engine cannot run here; None where it does. Starts and stops it."""
    try:
        native = native_module()
    except ImportError as error:
        return str(error)
    if native.is_running():
        return None
    with tempfile.TemporaryDirectory(prefix="loopcanary-") as folder:
        try:
            native.start(
                path=os.path.join(folder, "doctor.flight"),  # noqa: PTH118 - a str for C
                facts=b"{}",
                threshold_ns=10**11,
                sample_delay_ns=10**10,
                sample_interval_ns=10**9,
                hang_ns=10**12,
                anr_ns=10**12,
            )
        except (OSError, RuntimeError) as error:
            return str(error)
        native.stop(False, 5.0)
    return None


def _portable() -> Iterator[Row]:
    from loopcanary.portable.blind_spots import BLIND_SPOTS

    for sentence in BLIND_SPOTS:
        yield "cannot see", "off", sentence


def _loops(settings: Config) -> list[Row]:
    if settings.engine == PORTABLE or _native_obstacle() is not None:
        return loop_facts(PORTABLE)
    return loop_facts()


# ---- places -----------------------------------------------------------------------------------


def _places(settings: Config) -> Iterator[Row]:
    try:
        location = store.locate(settings.store)
    except store.StoreError as error:
        yield "store", "problem", str(error)
        return
    yield "store", "ok" if location.is_usable else "off", location.notice or str(location.folder)
    yield from program_facts(location.folder)
    yield _flight_place(settings.flight_dir)
    yield _startup_hook()
    yield _children(settings)


def _flight_place(wanted: str | None) -> Row:
    memory = Path(MEMORY if wanted is None else wanted)
    if memory.is_dir() and os.access(memory, os.W_OK):
        return "flight file", "ok", f"in {'memory, ' if wanted is None else ''}{memory}"
    if wanted is not None:
        return "flight file", "problem", f"{memory} (flight_dir) cannot be used: {MEMORY} is tried instead"
    return (
        "flight file",
        "off",
        f"{memory} cannot be used: the file is in the store, where disk write-back may delay the loop",
    )


def _readable(folder: Path) -> Row:
    with closing(open_store(folder)) as opened:
        try:
            found = opened.reader.totals(STALLS)
        except store.StoreError as error:
            return "store", "problem", str(error)
        problems = [*opened.notices, *opened.maintenance.unreadable()]
    stalls = f"{count_of(found.issues, 'stall')} in {count_of(found.groups, 'bug')}"
    return "store", "problem" if problems else "ok", "; ".join([f"{folder}: {stalls}", *problems])


def _telling(settings: Config) -> Iterator[Row]:
    """The log file, and notifications: where the settings ask for them, or there were some."""
    if settings.log_file is not None:
        folder = Path(settings.log_file).absolute().parent
        usable = os.access(folder, os.W_OK | os.X_OK)
        problem = "problem", f"{folder} cannot be written"
        yield "log file", *(("ok", settings.log_file) if usable else problem)
    if "bell" in settings.notify:
        yield "bell", "ok", "rings the program's terminal"
    for way in ("desktop", "webhook"):
        sent = _sent(settings, way)
        if way in settings.notify or sent is not None:
            obstacle = _obstacle_to(way, settings) if way in settings.notify else None
            yield way, *(("off", obstacle) if obstacle else sent or ("ok", "nothing sent yet"))


def _obstacle_to(way: str, settings: Config) -> str | None:
    if way == "desktop":
        from loopcanary.notifications.notifier import no_desktop

        return no_desktop()
    from loopcanary.notifications.webhook import AddressError, read_address

    try:
        read_address(os.environ, settings.webhook_file)
    except AddressError as error:
        return str(error)
    return None


def _sent(settings: Config, way: str) -> tuple[str, str] | None:
    """What became of the notifications of the latest run with this store."""
    from loopcanary.notifications.notifier import read_status

    try:
        folder = store.find(settings.store).folder
    except store.StoreError:
        return None
    status = read_status(folder, way)
    if status is None:
        return None
    number = {key: value for key, value in status.items() if isinstance(value, int)}
    words = f"{number.get('sent', 0)} sent"
    if number.get("withheld"):
        words += f", {count_of(number['withheld'], 'stall')} withheld for now"
    if number.get("lost"):
        words += f", {number['lost']} lost, of {count_of(number.get('lost_stalls', 0), 'stall')}"
    problem = status.get("problem")
    return ("problem", f"{words}: {problem}") if isinstance(problem, str) else ("ok", words)


def _startup_hook() -> Row:
    import site

    what, name = "start by LOOPCANARY=1", "loopcanary-auto"
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    if any(Path(folder, "loopcanary_auto.pth").is_file() for folder in folders):
        return what, "ok", f"{name} is installed"
    is_child = "_bootstrap" in os.environ.get(
        "PYTHONPATH", ""
    )  # of a watched program, which starts it otherwise
    status = "problem" if os.environ.get("LOOPCANARY") == "1" and not is_child else "off"
    return what, status, f"{name} is not installed; `loopcanary run` and install() work without it"


def _children(settings: Config) -> Row:
    if not settings.follow_children:
        return "children", "off", "not watched (follow_children)"
    return (
        "children",
        "ok",
        "watched, except a Python with -E, -I or -S; one with a new PYTHONPATH needs loopcanary-auto",
    )


def _limits() -> Row:
    _, cores = cgroup_limits()
    if cores is None:
        return "cgroup", "ok", "no CPU quota"
    return "cgroup", "ok", f"CPU quota of {cores:g} cores: throttling is reported apart from stalls of code"


# ---- self-test --------------------------------------------------------------------------------


def self_test() -> Row:
    """Stalls a child program for 300 ms and looks for the stall in a store of its own."""
    with tempfile.TemporaryDirectory(prefix="loopcanary-") as name:
        folder = Path(name)
        program = folder / "self_test.py"
        program.write_text(_SELF_TEST, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "loopcanary", "run", "--quiet"]
        command += ["--store", str(folder / "store")]
        try:
            ran = subprocess.run(  # noqa: S603 - ourselves
                [*command, str(program)], check=False, capture_output=True, timeout=_SELF_TEST_S, cwd=folder
            )
        except subprocess.TimeoutExpired:
            return "self-test", "problem", f"the child did not end within {_SELF_TEST_S} s"
        if ran.returncode != 0:
            last = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            return "self-test", "problem", f"the child ended with {ran.returncode}: {last}"
        return _verdict(folder / "store")


def _verdict(folder: Path) -> Row:
    opened = open_store(folder)
    try:
        stalls = of_type(Stall, opened.reader.issues(STALLS)) if folder.is_dir() else []
    except store.StoreError as error:
        return "self-test", "problem", str(error)
    finally:
        opened.close()
    if not stalls:
        return "self-test", "problem", "a stall of 300 ms in a child program was not seen"
    stall = stalls[0]
    line = stall.culprit.line if stall.culprit else 0
    seen = f"a stall of 300 ms was seen as {format_duration(stall.duration_ns)}"
    if line != _SELF_TEST_LINE:
        return "self-test", "problem", f"{seen}, but in line {line} instead of {_SELF_TEST_LINE}"
    return "self-test", "ok", f"{seen}, {stall.cause.value}, in the right line"
