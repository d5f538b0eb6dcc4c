"""The screen of `loopcanary top`: a thin layer over the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input, Static

from loopcanary.facts import working_folder
from loopcanary.top.about import LINES, about
from loopcanary.top.choosing import ORDERS, RowChoice, chosen
from loopcanary.top.columns import NOTHING, headline
from loopcanary.top.pages import LivePage, Pages, help_lines
from loopcanary.top.rows import LaneRow
from loopcanary.top.table import LaneTable, looks
from loopcanary.words.text import printable

_LEAST_HEIGHT = 14
"""Lower screens have no room for the lines about the chosen row."""
_KEYS = "? help  q quit  l stack  w tasks  g bug  s sort  r reverse  / filter  a all  p pause  t light"
_ORDERS = tuple(ORDERS)


class Top(App[None]):
    """The table, and below it everything about the chosen row. Reads on a thread of its own."""

    CSS = f"""
    Screen {{ background: $background; }}
    #head {{ height: 1; padding: 0 2; text-style: bold; background: $panel; }}
    LaneTable {{ height: 1fr; }}
    #nothing {{ height: 1fr; padding: 2 4; display: none; }}
    #about {{ height: {LINES + 1}; padding: 0 2; border-top: solid $panel; }}
    #filter {{ height: 1; border: none; padding: 0 2; display: none; }}
    #keys {{ height: 1; padding: 0 2; background: $panel; }}
    #head, #about, #keys {{ text-wrap: nowrap; text-overflow: ellipsis; }}
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("escape", "leave", "quit"),
        Binding("l,enter", "stack", "live stack"),
        Binding("w", "tasks", "tasks"),
        Binding("g", "group", "bug"),
        Binding("s", "order(1)", "order"),
        Binding("S", "order(-1)", "previous order"),
        Binding("r", "reverse", "reverse"),
        Binding("slash", "filter", "filter"),
        Binding("a", "everything", "all"),
        Binding("p,space", "pause", "pause"),
        Binding("t", "light", "dark or light"),
        Binding("question_mark,h,f1", "help", "help"),
    ]

    class RowsRead(Message):
        def __init__(self, rows: Sequence[LaneRow]) -> None:
            super().__init__()
            self.rows = rows

    def __init__(
        self,
        look: Callable[[], Sequence[LaneRow]],
        choice: RowChoice,
        pages: Pages,
        *,
        interval_s: float = 1.0,
        is_dark: bool = True,
    ) -> None:
        """One thread calls `look` for the present rows, again and again."""
        super().__init__()
        self._look = look
        self._choice = choice
        self._pages = pages
        self._interval_s = interval_s
        self._end = threading.Event()
        self._is_paused = False
        self._rows: Sequence[LaneRow] | None = None
        self._hidden = 0
        self._folder = working_folder()
        self._shown: Sequence[LaneRow] = ()
        self._texts: dict[str, str] = {}
        # Kept by hand: Textual looks for names on the topmost page only.
        self._head = Static(id="head")
        self._table = LaneTable()
        nothing = Text("\n").join([Text(NOTHING[0], "bold"), *map(Text, NOTHING[1:])])
        self._nothing = Static(nothing, id="nothing")
        self._about = Static(id="about")
        self._filter = Input(placeholder="words", id="filter")
        self.theme = "textual-dark" if is_dark else "textual-light"

    # ---- the parts of the screen -----------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._table
        yield self._nothing
        yield self._about
        yield self._filter
        yield Static(Text(_KEYS, no_wrap=True, overflow="ellipsis"), id="keys")

    def on_mount(self) -> None:
        self._table.focus()
        self._filter.value = self._choice.words
        threading.Thread(target=self._read, daemon=True, name="loopcanary top").start()

    def on_unmount(self) -> None:
        self._end.set()

    def _read(self) -> None:
        """Reads again and again, without making up for a reading longer than the interval."""
        while not self._end.is_set():
            if not self._is_paused:
                self.post_message(self.RowsRead(self._look()))
            self._end.wait(self._interval_s)

    # ---- showing ----------------------------------------------------------------------------------------

    def on_top_rows_read(self, message: RowsRead) -> None:
        self._rows = message.rows
        self._show()

    def on_resize(self, event: Resize) -> None:
        self._about.display = event.size.height >= _LEAST_HEIGHT
        self.call_after_refresh(self._show)

    def on_lane_table_moved(self) -> None:
        self._show_about()
        self._show_head()

    @property
    def _is_there(self) -> bool:
        """False while the screen is taken down, when a reading may still come."""
        return not self._end.is_set() and self._table.is_attached

    def _show(self) -> None:
        if self._rows is None or not self._is_there:
            return
        shown = chosen(self._rows, self._choice)
        self._hidden = len(self._rows) - len(shown)
        self._shown = shown
        table = self._table
        table.show(shown)
        table.display = bool(shown) or bool(self._rows)
        self._nothing.display = not self._rows
        self._show_head()
        self._show_about()

    def _show_head(self) -> None:
        if self._rows is None or not self._is_there:
            return
        first, last = self._table.span
        parts = [headline(self._shown, self._hidden, "" if self._choice.words else "a")]
        if last - first + 1 < len(self._shown):
            parts.append(f"lines {first} to {last}")
        order = self._choice.order + (" reversed" if self._choice.reverse else "")
        parts.append(f"by {order}")
        if self._choice.words:
            parts.append(f"with {printable(self._choice.words, 30)}")
        if self._is_paused:
            parts.insert(0, "PAUSED")
        self._update(self._head, Text("   ".join(parts), no_wrap=True, overflow="ellipsis"))

    def _show_about(self) -> None:
        if not self._is_there:
            return
        row = self._table.chosen
        styles = looks(is_dark=self.current_theme.dark)
        lines = []
        for pieces in about(row, self._folder) if row is not None else []:
            line = Text(no_wrap=True, overflow="ellipsis")
            for text, look in pieces:
                line.append(text, styles.get(look))
            lines.append(line)
        self._update(self._about, Text("\n", no_wrap=True, overflow="ellipsis").join(lines))

    def _update(self, part: Static, text: Text) -> None:
        """Draws only what has changed."""
        key = str(part.id)
        if self._texts.get(key) != text.markup:
            self._texts[key] = text.markup
            part.update(text)

    # ---- keys -------------------------------------------------------------------------------------------

    def _choose(self, choice: RowChoice) -> None:
        self._choice = choice
        self._show()

    def action_order(self, by: int) -> None:
        at = (_ORDERS.index(self._choice.order) + by) % len(_ORDERS)
        self._choose(replace(self._choice, order=_ORDERS[at]))

    def action_reverse(self) -> None:
        self._choose(replace(self._choice, reverse=not self._choice.reverse))

    def action_everything(self) -> None:
        self._choose(replace(self._choice, everything=not self._choice.everything))

    def action_pause(self) -> None:
        self._is_paused = not self._is_paused
        self._show_head()

    def action_light(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
        self._show()

    def action_filter(self) -> None:
        field = self._filter
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._choose(replace(self._choice, words=event.value))

    def on_input_submitted(self) -> None:
        self._leave_filter()

    def action_leave(self) -> None:
        """Leaves and undoes the filter; without one, leaves the program."""
        field = self._filter
        if field.display or self._choice.words:
            field.value = ""
            self._leave_filter()
            self._choose(replace(self._choice, words=""))
        else:
            self.exit()

    def _leave_filter(self) -> None:
        self._filter.display = False
        self._table.focus()

    def action_stack(self) -> None:
        self._live("live stack", self._pages.stack)

    def action_tasks(self) -> None:
        self._live("tasks", self._pages.tasks)

    def _live(self, what: str, load: Callable[[LaneRow, int], Sequence[Text]]) -> None:
        row = self._table.chosen
        if row is not None:
            title = f"{what}: {printable(row.program, 40)}, pid {row.pid}"
            self.push_screen(LivePage(title, lambda width: load(row, width), every_s=1.0))

    def action_group(self) -> None:
        row = self._table.chosen
        if row is not None:
            title = f"last stall and its bug: {printable(row.program, 40)}, pid {row.pid}"
            self.push_screen(LivePage(title, lambda width: self._pages.group(row, width)))

    def action_help(self) -> None:
        self.push_screen(LivePage("loopcanary top", help_lines))
