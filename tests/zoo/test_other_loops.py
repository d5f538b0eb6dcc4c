"""Loops other than asyncio's: that each has its kinds and controls, and can play them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.zoo.judging import assert_told_as_it_is
from zoo import catalogue, here, loops, page, results, trial, watchers
from zoo.loops import Loop
from zoo.loops.steps import CallbackHost, Pause
from zoo.scoring import Score

KINDS = catalogue.read_all()
ABOUT = {
    "machine": {"python": "3.12.1", "system": "Linux", "machine": "x86_64", "cores": 2},
    "made_at": "today",
    "versions": {},
    "absent": [],
    "loops": {
        "trio": {"version": "0.35.0", "python": "3.12.1", "made_at": "today"},
        "glib": {"version": "3.42.2", "python": "3.11.7", "made_at": "yesterday"},
    },
}
LINE = Score(detected=True, function=True, line=True, cause=True)


def played(kind="sleep", loop="trio", score=LINE, **more):
    what = {"watcher": "loopcanary", "outcome": "played"} | more
    return trial.Trial(kind=kind, loop=loop, score=score, **what)


# ---- the catalogue ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", loops.OTHERS)
def test_each_loop_has_enough_kinds_and_controls(loop):
    own = [kind for kind in KINDS if loop in kind.loops]
    assert len([kind for kind in own if not kind.control]) >= 12
    assert len([kind for kind in own if kind.killed]) >= 2
    # One of them is its own: a dialog, a game, a burst of tasks.
    controls = {kind for kind in own if kind.control}
    assert len(controls) >= 6
    assert any("asyncio" not in kind.loops and len(kind.loops) < 3 for kind in controls)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("'all'", tuple(loops.ALL)), ("'others'", tuple(loops.OTHERS)), ("['tk']", ("tk",))],
)
def test_a_kind_names_its_loops_or_a_group_of_them(tmp_path, said, meant):
    path = tmp_path / "kind.py"
    path.write_text(f'"""What it is."""\nEXPECT = {{"control": True, "loops": {said}}}\n')
    assert catalogue.read(path).loops == meant


@pytest.mark.parametrize("said", ["'al'", "['twisted']"])
def test_a_loop_that_is_none_is_refused(tmp_path, said):
    path = tmp_path / "kind.py"
    path.write_text(f'"""What it is."""\nEXPECT = {{"control": True, "loops": {said}}}\n')
    with pytest.raises(ValueError, match="no such loop as"):
        catalogue.read(path)


def test_watchers_of_asyncio_alone_are_not_played_elsewhere():
    everywhere = {name for name in watchers.names() if set(watchers.loops_of(name)) == set(loops.ALL)}
    assert everywhere == {"loopcanary", "faulthandler-heartbeat", "hanging-threads"}
    assert watchers.loops_of("pyleak") == ("asyncio", "uvloop")


# ---- what is here -----------------------------------------------------------------------------------


def test_a_loop_whose_library_is_missing_is_so_in_words(monkeypatch):
    monkeypatch.setitem(loops.ALL, "away", Loop(title="away", asks="import library_that_is_away"))
    version, obstacle = here.look("away")
    assert version == ""
    assert obstacle == "ModuleNotFoundError: No module named 'library_that_is_away'"
    assert here.look("asyncio") == ("", "")


# ---- coroutines in steps ----------------------------------------------------------------------------


class Calendar(CallbackHost):
    """A loop whose time is a number."""

    def __init__(self):
        self.now = 0.0
        self.entries = []
        self.running = True

    def later(self, seconds, function):
        self.entries.append((self.now + seconds, function))

    def loop(self):
        while self.running:
            self.entries.sort(key=lambda entry: entry[0])
            self.now, function = self.entries.pop(0)
            function()

    def leave(self):
        self.running = False


def test_each_pause_ends_a_callback_of_the_loop():
    calendar, seen = Calendar(), []

    async def program():
        seen.append(("program", calendar.now))

    async def beat():
        while True:
            seen.append(("beat", calendar.now))
            await Pause(2)

    async def main():
        stop = calendar.beside(beat)
        await calendar.pause(3)
        stop()
        await calendar.call(program)
        await calendar.pause(5)
        seen.append(("end", calendar.now))

    calendar.run(main)
    assert seen == [("beat", 0), ("beat", 2), ("program", 3), ("end", 8)]


@pytest.mark.parametrize("where", ["run", "beside"])
def test_what_a_step_raises_ends_the_loop_and_is_raised(where):
    calendar = Calendar()

    async def fails():
        await Pause(1)
        raise KeyError("on purpose")

    async def main():
        if where == "beside":
            calendar.beside(fails)
            await Pause(100)
        await fails()

    with pytest.raises(KeyError, match="on purpose"):
        calendar.run(main)
    assert calendar.now == 1


# ---- the pages --------------------------------------------------------------------------------------

TRIALS = [
    played(),
    played("hang_regex"),
    played("ok_idle", score=Score(false_alarms=0)),
    played(loop="glib"),
    played(loop="glib", watcher="hanging-threads", score=replace(LINE, cause=False)),
    played("tk_command", loop="tk", outcome="failed"),
    played(loop="asyncio"),
]


def test_the_page_has_one_table_of_all_other_loops(tmp_path):
    path = tmp_path / "zoo.md"
    path.write_text(f"{page.BEGIN}\n{page.END}\n")
    page.write(path, TRIALS, KINDS, ABOUT)
    text = path.read_text()
    assert "### Totals on asyncio" in text
    assert "### Totals on trio" not in text
    assert text.count("### Other loops") == 1
    assert "1 to 2 kinds and 0 to 1 controls on each" in text
    assert "| trio 0.35.0 | loopcanary | 100% of 2 |" in text
    assert "| GLib by PyGObject 3.42.2 (CPython 3.11.7) | hanging-threads | 100% of 1 |" in text
    assert "- tk_command on tk: the program failed" in text


def test_the_page_without_other_loops_is_as_it_was(tmp_path):
    path = tmp_path / "zoo.md"
    path.write_text(f"{page.BEGIN}\n{page.END}\n")
    page.write(path, [played(loop="asyncio")], KINDS, {**ABOUT, "loops": {}})
    assert "Other loops" not in path.read_text()


def test_results_of_two_machines_are_added():
    mine, theirs = ([played(), played("regex")], ABOUT | {"loops": {}}), ([played(truth_ms=1.0)], ABOUT)
    trials, about = results.added(mine, theirs)
    assert trials == [played("regex"), played(truth_ms=1.0)]
    assert about == ABOUT
    assert results.added(([], {}), theirs) == theirs


# ---- played -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    """An X server while the module's tests run, for those that need one."""
    with contextlib.ExitStack() as stack:
        yield SimpleNamespace(on=lambda: stack.enter_context(here.screen()))


@pytest.mark.native
@pytest.mark.parametrize("name", ["sleep", "ok_idle"])
@pytest.mark.parametrize("loop", loops.OTHERS)
def test_a_kind_and_a_control_are_judged_as_they_are(drawn, loop, name):
    _, obstacle = here.look(loop)
    if obstacle:
        pytest.skip(obstacle)
    if loops.ALL[loop].screen:
        drawn.on()
    assert_told_as_it_is(catalogue.KINDS / f"{name}.py", loop)
