"""The screen, driven by keys: rows come from the test, one reading after the other."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from rich.text import Text

from loopcanary import diagnosis
from loopcanary.model.live import Life
from loopcanary.top.choosing import EXITED_SHOWN_NS, RowChoice
from loopcanary.top.past import Past
from loopcanary.top.rows import LaneRow, rows

from .readings import MS, WALL, S, in_callback, process, session, stall

# Textual is others' code: what it is warned of on newer Pythons is not our business.
pytestmark = pytest.mark.filterwarnings("default")


def shop(hung_ns: int = 5 * S) -> list[LaneRow]:
    """Three programs: one that hangs, one that works, one that was killed."""
    last = {0: stall()}
    processes = [
        process(in_callback(hung_ns), key="1", session=session(name="hangs", pid=101), last=last),
        process(in_callback(30 * MS), key="2", session=session(name="works", pid=102)),
        process(in_callback(S), key="3", session=session(name="dead", pid=103), life=Life.KILLED),
    ]
    return rows(processes, Past(), diagnosis.loop_health, WALL)


class Told:
    """Pages that say what they were asked for."""

    def stack(self, row: LaneRow, _width: int) -> Sequence[Text]:
        return [Text(f"stack of {row.program}"), *(Text(f"frame {n}") for n in range(60))]

    def tasks(self, row: LaneRow, _width: int) -> Sequence[Text]:
        return [Text(f"tasks of {row.program}")]

    def group(self, row: LaneRow, _width: int) -> Sequence[Text]:
        return [Text(f"group of {row.program} [bold]as it is[/bold]")]


class Screen:
    """The application under its pilot, and the text on it."""

    def __init__(self, app: Any, pilot: Any, readings: queue.Queue[list[LaneRow]]) -> None:
        self.app = app
        self.pilot = pilot
        self._readings = readings

    def lines(self) -> list[str]:
        """What the terminal would show."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips()
        text = ["".join(segment.text for segment in strip) for strip in strips]
        assert len(text) == height
        assert all(len(line) == width for line in text)
        return text

    def text(self) -> str:
        return "\n".join(self.lines())

    async def read(self, found: list[LaneRow]) -> None:
        """Another reading."""
        self._readings.put(found)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, is_so: Callable[[str], bool]) -> str:
        """The screen, once it is as it shall be: it draws when it comes to it."""
        for _ in range(20_000):
            await self.pilot.pause()
            if is_so(self.text()):
                return self.text()
            await asyncio.sleep(0.005)
        raise AssertionError(self.text())

    def row_of(self, name: str) -> str:
        return next(line for line in self.lines() if name in line and "pid" not in line)


def drive(
    story: Callable[[Screen], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
    first: Sequence[LaneRow] | None = None,
) -> None:
    """Tells the story to a screen that has had its first reading."""
    pytest.importorskip("textual")
    from loopcanary.top.app import Top

    readings: queue.Queue[Any] = queue.Queue()
    readings.put(shop() if first is None else list(first))
    known: list[Any] = []

    def look() -> Sequence[LaneRow]:
        known[:] = [readings.get()]
        return known[0]

    async def run() -> None:
        app = Top(look, RowChoice(), Told(), interval_s=0.001)
        async with app.run_test(size=size) as pilot:
            screen = Screen(app, pilot, readings)
            try:
                await screen.until(lambda text: "program" in text.splitlines()[0] or "No watched" in text)
                await story(screen)
            finally:
                readings.put([])

    try:
        asyncio.run(run())
    finally:
        readings.put([])  # for a thread that asked once more meanwhile


def test_worst_first_in_80_by_24():
    async def story(screen: Screen) -> None:
        head, columns, *shown = screen.lines()
        assert "3 programs, 3 loops: 1 hung, 1 busy, 1 killed" in head
        assert columns.split() == ["state", "pid", "program", "busy", "p99", "stalls", "in", "callback"]
        assert [line.split()[0] for line in shown[:3]] == [">", "busy", "killed"]
        assert "hung 5.00 s" in shown[0]
        text = screen.text()
        assert "asyncio on MainThread" in text
        assert "/srv/shop/pricing.py:13 in Shop.price" in text
        assert "? help" in screen.lines()[-1]

    drive(story)


def test_a_wide_screen_has_every_column():
    async def story(screen: Screen) -> None:
        assert "last stall" in screen.lines()[1]
        assert "pricing.py:13" in screen.lines()[2]

    drive(story, size=(160, 50))


@pytest.mark.parametrize("size", [(20, 4), (40, 10), (300, 100)])
def test_odd_sizes(size: tuple[int, int]):
    async def story(screen: Screen) -> None:
        assert "hung" in screen.text()
        await screen.press("l")
        await screen.until(lambda text: "stack of" in text)
        await screen.press("q", "w")
        await screen.until(lambda text: "tasks of" in text)

    drive(story, size=size)


def test_without_programs_it_says_what_to_do():
    async def story(screen: Screen) -> None:
        assert "loopcanary run app.py" in screen.text()
        await screen.press("l", "g", "down")
        await screen.read(shop())
        await screen.until(lambda text: "hung 5.00 s" in text and "loopcanary run" not in text)

    drive(story, first=[])


def test_readings_are_shown_and_the_cursor_stays_with_its_loop():
    async def story(screen: Screen) -> None:
        await screen.press("down")
        await screen.until(lambda text: "> busy" in text)
        await screen.read(list(reversed(shop(9 * S))))
        await screen.until(lambda text: "hung 9.00 s" in text and "> busy" in text)
        await screen.press("r")
        await screen.until(lambda text: "reversed" in text and "> busy" in text)

    drive(story)


def test_orders():
    async def story(screen: Screen) -> None:
        for name in ("busy", "delay", "callbacks", "stalls", "latest", "program", "pid", "trouble", "busy"):
            await screen.press("s")
            await screen.until(lambda text, name=name: f"by {name}" in text)
        await screen.press("S")
        await screen.until(lambda text: "by trouble" in text)

    drive(story)


def test_a_filter():
    async def story(screen: Screen) -> None:
        await screen.press("slash")
        await screen.until(lambda _: screen.app.focused is not None and screen.app.focused.id == "filter")
        await screen.press(*"work")
        await screen.until(lambda text: "1 program" in text and "with work" in text)
        await screen.press("enter", "s")
        await screen.until(lambda text: "by busy" in text and "with work" in text)
        await screen.press("escape")
        await screen.until(lambda text: "3 programs" in text)

    drive(story)


def test_pause_light_and_all():
    async def story(screen: Screen) -> None:
        await screen.press("p")
        await screen.until(lambda text: "PAUSED" in text)
        await screen.press("p", "t", "a")
        await screen.until(lambda text: "PAUSED" not in text and not screen.app.current_theme.dark)

    drive(story)


def test_what_is_hidden_is_shown_by_a_key():
    ended = process(in_callback(S), key="4", session=session(name="job", pid=104), life=Life.EXITED)
    late = rows([ended], Past(), diagnosis.loop_health, WALL + EXITED_SHOWN_NS)

    async def story(screen: Screen) -> None:
        await screen.until(lambda text: "1 not shown (key a)" in text)
        await screen.press("a")
        await screen.until(lambda text: "1 exited" in text and "not shown" not in text)

    drive(story, first=[*shop(), *late])


def test_pages():
    async def story(screen: Screen) -> None:
        await screen.press("l")
        await screen.until(lambda text: "stack of hangs" in text and "frame 3" in text)
        await screen.press("p")
        await screen.until(lambda text: "go on" in text)
        await screen.press("end")
        await screen.until(lambda text: "frame 59" in text)
        await screen.press("q")
        await screen.until(lambda text: "in callback" in text)
        await screen.press("down", "g")
        await screen.until(lambda text: "group of works [bold]as it is[/bold]" in text)
        await screen.press("escape", "question_mark")
        await screen.until(lambda text: "live stack: what every thread" in text)
        await screen.press("escape")
        await screen.until(lambda text: "in callback" in text)

    drive(story)


def test_names_are_text_and_nothing_else():
    async def story(screen: Screen) -> None:
        text = await screen.until(lambda text: "[red]" in text)
        assert "\\x1b" in text

    hostile = session(name="[red]\x1b[31m\u202e")
    reading = process(in_callback(5 * S), session=hostile)
    drive(story, size=(120, 30), first=rows([reading], Past(), diagnosis.loop_health, WALL))


def test_more_rows_than_lines():
    async def story(screen: Screen) -> None:
        assert "lines 1 to" in screen.text()
        await screen.press("end")
        await screen.until(lambda text: "p99 " in text and "name-59" in text)
        await screen.press("home", "pagedown")
        await screen.until(lambda text: "> idle" in text and "name-59" not in text)

    many = [process(key=f"{n:02}", session=session(name=f"name-{n:02}", pid=n + 1)) for n in range(60)]
    drive(story, size=(120, 24), first=rows(many, Past(), diagnosis.loop_health, WALL))


def test_q_ends_it():
    async def story(screen: Screen) -> None:
        await screen.press("q")
        for _ in range(2_000):
            if not screen.app.is_running or screen.app._exit:
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it goes on")

    drive(story)
