"""Third parties' tracers in programs: the examples, and some that fail."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import pytest

from loopcanary.assembly.store import open_store
from loopcanary.model import IssueKind, PhaseKind, SlowMethod, Startup
from loopcanary.model.search import OTHERS

from .watching import PATIENT_PLUGINS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/tracers"
DOCS = EXAMPLES.parents[1] / "docs/how-to/tracers.md"

FAULTY = """
import os
import time
from loopcanary.model import Startup

GOOD = Startup(began_wall_ns=time.time_ns(), duration_ns=5, threshold_ns=4, title="good")

class Tracer:
    name = "any"

    def init(self, desk):
        self.desk = desk

    def start(self):
        print("start", type(self).__name__, flush=True)

    def stop(self):
        print("stop", type(self).__name__, flush=True)

class Sound(Tracer):
    def start(self):
        super().start()
        print(self.desk.report(GOOD), flush=True)

class Unmade(Tracer):
    def __init__(self):
        raise RuntimeError("not made")

class Unstarted(Tracer):
    def start(self):
        super().start()
        raise RuntimeError("not started")

class Unstopped(Tracer):
    def stop(self):
        super().stop()
        raise RuntimeError("not stopped")

class Wrong(Tracer):
    def start(self):
        self.desk.report("no issue")
        self.desk.report(GOOD.__class__(began_wall_ns=1, duration_ns=-5, threshold_ns=4))
"""
OWN = (
    PATIENT_PLUGINS
    + """\
import loopcanary
from loopcanary.registry import REGISTRY, TRACERS

class Own:
    name = "own"

    def init(self, desk):
        pass

    def start(self):
        print("own", flush=True)

    def stop(self):
        print("stopped", flush=True)

    def destroy(self):
        print("destroyed", flush=True)

REGISTRY.add(TRACERS, "own", Own)
loopcanary.install()
"""
)
NAMES = ("Sound", "Unmade", "Unstarted", "Unstopped", "Wrong", "Missing")


def plugged_in(folder: Path, points: dict[str, str]) -> Path:
    """A folder on the path that looks like an installed package with these tracers."""
    metadata = folder / "mine-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    lines = "".join(f"{name} = {what}\n" for name, what in points.items())
    (metadata / "entry_points.txt").write_text(f"[loopcanary.tracers]\n{lines}")
    return folder


@pytest.fixture
def examples(place) -> Path:
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not here")
    project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text(encoding="utf-8"))
    folder = plugged_in(place.folder / "plugins", project["project"]["entry-points"]["loopcanary.tracers"])
    for file in EXAMPLES.glob("*.py"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture
def faulty(place) -> Path:
    folder = plugged_in(place.folder / "plugins", {name.lower(): f"faulty:{name}" for name in NAMES})
    (folder / "faulty.py").write_text(FAULTY)
    return folder


def issues(place) -> list[Startup | SlowMethod]:
    opened = open_store(place.store)
    try:
        return [one for one in opened.reader.issues(OTHERS) if isinstance(one, (Startup, SlowMethod))]
    finally:
        opened.close()


def test_the_examples_write_a_start_and_a_slow_method(place, examples):
    package = place.folder / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("from . import stock\nfrom .stock import *\nfrom . import stock\n")
    (package / "stock.py").write_text("from .prices import PRICES\nfrom . import prices\n")
    (package / "prices.py").write_text("PRICES = {}\n")
    (package / "orders.py").write_text(
        "import time\n"
        "def load():\n    for _ in range(3):\n        wait()\n"
        "def wait():\n    time.sleep(0.3)\n"
        "def short():\n    pass\n"
    )
    program = place.program(
        """
        import colorsys_of_mine, start_tracer
        from shop.orders import load, short
        start_tracer.ready()
        start_tracer.ready()
        short()
        load()
        """,
        prelude=OWN,
    )
    (place.folder / "colorsys_of_mine.py").write_text("import wave\n")
    done = place.run(program, PYTHONPATH=str(examples), LOOPCANARY="")
    assert done.stdout.split() == ["own", "stopped", "destroyed"]
    slow, start = sorted(issues(place), key=lambda one: one.kind.value)
    assert isinstance(start, Startup)
    names = [(phase.depth, phase.name) for phase in start.phases if phase.kind is PhaseKind.IMPORT]
    at = names.index((0, "colorsys_of_mine"))
    assert names[at + 1] == (1, "wave")
    at = names.index((0, "shop.orders"))
    assert names[at + 1 : at + 3] == [(1, "shop.stock"), (2, "shop.prices")]
    assert len(set(names)) == len(names)
    assert all(0 <= phase.self_ns <= phase.duration_ns for phase in start.phases)
    assert start.program == "program.py"
    assert isinstance(slow, SlowMethod)
    assert [(row.depth, row.frame.function, row.count) for row in slow.rows] == [
        (0, "load", 1),
        (1, "wait", 3),
    ]
    assert slow.key_row is slow.rows[1]
    assert slow.culprit is not None
    assert slow.culprit.file == str(package / "orders.py")
    assert slow.duration_ns >= 900_000_000


def test_the_page_has_the_example_as_it_is():
    if not DOCS.is_file():
        pytest.skip("the documentation is not here")
    page = DOCS.read_text(encoding="utf-8")
    assert f"```python\n{(EXAMPLES / 'start_tracer.py').read_text(encoding='utf-8')}```" in page


def test_tracers_that_fail_are_switched_off_alone(place, faulty):
    program = place.program(
        """
        canary = loopcanary.install()
        print(sorted(name for name in loopcanary.statistics() if "tracer" in name), flush=True)
        """,
        prelude=PATIENT_PLUGINS + "import loopcanary\n",
    )
    done = place.run(program, PYTHONPATH=str(faulty), LOOPCANARY="")
    first, *more = done.stdout.splitlines()
    assert first == "start Sound"
    assert more[:4] == ["True", "start Unstarted", "stop Unstarted", "start Unstopped"]
    assert sorted(more[5:]) == ["stop Sound", "stop Unstopped", "stop Wrong"]
    assert "failures_tracer unmade" in more[4]
    assert [issue.title for issue in issues(place)] == ["good"]
    told = [line for line in done.stderr.splitlines() if "tracer" in line or "plugin" in line]
    assert {line.partition(" failed")[0] for line in told} == {
        "loopcanary: plugin missing",
        "loopcanary: tracer unmade",
        "loopcanary: tracer unstarted",
        "loopcanary: end of tracer unstopped",
        "loopcanary: issue of tracer wrong",
    }
    rows = place.run(
        "-c",
        PATIENT_PLUGINS
        + "from loopcanary.assembly.doctor import doctor_facts; print(*doctor_facts(), sep='\\n')",
        PYTHONPATH=str(faulty),
        LOOPCANARY="",
    ).stdout.splitlines()
    lines = {row.split("'")[1].removeprefix("tracer "): row for row in rows if row.startswith("('tracer ")}
    assert "of mine 1" in lines["sound"]
    assert set(lines) == {name.lower() for name in NAMES}
    states = {name: row.split("'")[3] for name, row in lines.items()}
    assert [name for name, state in states.items() if state == "ok"] == ["sound"]
    assert "failed in the latest run" in lines["unstarted"]
    assert "failed at the end" in lines["unstopped"]
    assert "was refused" in lines["wrong"]
    assert "Missing" in lines["missing"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_stops_its_parent_s_and_starts_its_own(place, faulty):
    program = place.program(
        """
        import os
        loopcanary.install()
        print("fork", flush=True)
        child = os.fork()
        if child == 0:
            with loopcanary.watch("job"):
                pass
            loopcanary.uninstall()
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", flush=True)
        """,
        prelude=PATIENT_PLUGINS + "import loopcanary\n",
    )
    done = place.run(program, PYTHONPATH=str(faulty), LOOPCANARY="")
    before, _, after = done.stdout.partition("fork\n")
    child, _, parent = after.partition("parent\n")
    assert "stop Sound" not in before
    assert child.index("stop Sound") < child.index("start Sound") < child.rindex("stop Sound")
    assert parent.count("stop Sound") == 1
    assert {issue.kind for issue in issues(place)} == {IssueKind.STARTUP}
    assert len(issues(place)) == 2
