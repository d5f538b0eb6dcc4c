"""Pages over the table: a live stack, the bug of a last stall, help."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from rich.console import Console
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from loopcanary.top.rows import LaneRow

if TYPE_CHECKING:
    from textual.app import ComposeResult

_WRAPPER = Console()
HELP = (
    ("up down, j k", "choose a loop; page up, page down, home, end"),
    ("l, enter", "live stack: what every thread of its process does now (as `loopcanary dump`)"),
    ("w", "what its tasks wait for (as `loopcanary dump --tasks`)"),
    ("g", "the bug of its last stall (as `loopcanary show`)"),
    ("s, S", "next order, previous order: trouble, busy, delay, callbacks, stalls, latest, program, pid"),
    ("r", "reverse the order"),
    ("/", "filter by words in anything that is shown; escape takes it back"),
    ("a", "all: also loops that are gone, and processes that ended a while ago"),
    ("p, space", "pause"),
    ("t", "dark or light"),
    ("q, escape", "quit"),
    ("", ""),
    ("busy, ever", "share of the last second, and of its life, in which the loop ran callbacks"),
    ("p50, p99", "how long an event waits for the loop; of the last 10 seconds"),
    ("call/s", "callbacks a second"),
    ("in callback", "what the loop runs now; known from a fifth of the threshold on"),
    ("hung", "in a stall of a second or more; stalled: over its threshold"),
)


class Pages(Protocol):
    """Makes the text of pages. A call may take seconds, runs on a thread of its own, and must not raise."""

    def stack(self, row: LaneRow, width: int) -> Sequence[Text]:
        """The stacks of the row's process now."""

    def tasks(self, row: LaneRow, width: int) -> Sequence[Text]:
        """What the tasks of the row's process wait for now."""

    def group(self, row: LaneRow, width: int) -> Sequence[Text]:
        """The bug behind the row's last stall."""


class LivePage(ModalScreen[None]):
    """Lines that scroll. A thread calls `load` with the width, and again after each `every_s`, if given."""

    CSS = """
    LivePage { background: $background; }
    LivePage #title { height: 1; width: 1fr; text-style: bold; padding: 0 1; background: $panel; }
    LivePage #body { height: 1fr; padding: 0 1; overflow-x: auto; }
    LivePage #body Static { width: auto; }
    LivePage #keys { height: 1; padding: 0 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("u", "again", "read again"),
        Binding("p,space", "pause", "pause"),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
    ]

    class Loaded(Message):
        def __init__(self, lines: Sequence[Text]) -> None:
            super().__init__()
            self.lines = lines

    def __init__(
        self, title: str, load: Callable[[int], Sequence[Text]], every_s: float | None = None
    ) -> None:
        super().__init__()
        self._title = title
        self._load = load
        self._every_s = every_s
        self._is_paused = False
        self._is_loading = False
        self.lines: Sequence[Text] = ()

    def compose(self) -> ComposeResult:
        yield Static(Text(self._title), id="title")
        with VerticalScroll(id="body"):
            yield Static(Text("reading ...", "dim"))
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.query_one("#body").focus()
        self._show_keys()
        self.action_again()
        if self._every_s is not None:
            self.set_interval(self._every_s, self._follow)

    def _follow(self) -> None:
        if not self._is_paused:
            self.action_again()

    def action_again(self) -> None:
        if not self._is_loading:
            self._is_loading = True
            width = max(self.size.width - 4, 40)
            threading.Thread(target=self._read, args=(width,), daemon=True).start()

    def _read(self, width: int) -> None:
        self.post_message(self.Loaded(self._load(width)))

    def on_live_page_loaded(self, message: Loaded) -> None:
        self._is_loading = False
        self.lines = message.lines
        if not self.is_attached:
            return
        self.query_one("#body Static", Static).update(Text("\n", no_wrap=True, end="").join(message.lines))

    def _show_keys(self) -> None:
        words = "esc back   up down scroll"
        if self._every_s is not None:
            words += f"   p {'go on' if self._is_paused else 'pause'}   u read now"
        self.query_one("#keys", Static).update(Text(words, "dim"))

    def action_pause(self) -> None:
        self._is_paused = not self._is_paused
        self._show_keys()

    def action_scroll(self, lines: int) -> None:
        self.query_one("#body").scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        self.dismiss()


def help_lines(width: int) -> Sequence[Text]:
    label = max(len(keys) for keys, _ in HELP) + 2
    found = []
    for keys, words in HELP:
        wrapped = Text(words).wrap(_WRAPPER, max(width - label, 20))
        for number, line in enumerate(wrapped):
            found.append(Text.assemble((f"{keys if number == 0 else '':<{label}}", "bold"), line))
    return found
