"""The table of loops: one line a row, a cursor that stays with its loop, columns by the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from loopcanary.top.columns import fitted, fitting
from loopcanary.top.past import LaneKey
from loopcanary.top.rows import LaneRow

_MARK = "> "
DARK = {
    "bad": Style.parse("bold #ff7b72"),
    "warn": Style.parse("#e3b341"),
    "good": Style.parse("#7ee787"),
    "dim": Style.parse("#8b949e"),
    "bold": Style.parse("bold"),
    "place": Style.parse("#79c0ff"),
    "cursor": Style.parse("on #1f3b5c"),
    "head": Style.parse("bold underline"),
}
LIGHT = {
    "bad": Style.parse("bold #b3001b"),
    "warn": Style.parse("#7a4b00"),
    "good": Style.parse("#116329"),
    "dim": Style.parse("#57606a"),
    "bold": Style.parse("bold"),
    "place": Style.parse("#0550ae"),
    "cursor": Style.parse("on #cfe5ff"),
    "head": Style.parse("bold underline"),
}
"""The styles of looks, each of which has a word as well."""


def looks(*, is_dark: bool) -> dict[str, Style]:
    return DARK if is_dark else LIGHT


class LaneTable(Widget, can_focus=True):
    """Rows in the order given. Posts Moved when the cursor is on another row than before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "move(-100000)", "first", show=False),
        Binding("end,G", "move(100000)", "last", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[LaneRow] = ()
        self._at = 0
        self._key: LaneKey | None = None
        self._first = 0

    @property
    def chosen(self) -> LaneRow | None:
        return self._rows[self._at] if self._rows else None

    @property
    def span(self) -> tuple[int, int]:
        """The numbers of the first and the last row in view, from 1."""
        return self._first + 1, min(self._first + self._room, len(self._rows))

    def show(self, rows: Sequence[LaneRow]) -> None:
        """Shows these rows, with the cursor on its loop, or near its place."""
        self._rows = rows
        places = {row.key: index for index, row in enumerate(rows)}
        self._at = places.get(self._key, self._at) if self._key is not None else 0
        self._settle()
        self.refresh()

    def action_move(self, by: int) -> None:
        if self._rows:
            self._at += by
            self._at = max(0, min(self._at, len(self._rows) - 1))
            self._key = self._rows[self._at].key
            self._settle()
            self.refresh()
            self.post_message(self.Moved())

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self._room - 1, 1))

    def on_click(self, event: Click) -> None:
        if event.y > 0 and self._first + event.y - 1 < len(self._rows):
            self.action_move(self._first + event.y - 1 - self._at)

    def on_mouse_scroll_down(self, _: MouseScrollDown) -> None:
        """Moves the cursor: there is nothing else to scroll."""
        self.action_move(1)

    def on_mouse_scroll_up(self, _: MouseScrollUp) -> None:
        self.action_move(-1)

    def on_resize(self, _: Resize) -> None:
        self._settle()

    @property
    def _room(self) -> int:
        return max(self.size.height - 1, 1)

    def _settle(self) -> None:
        """Puts the cursor on a row, and the row into view."""
        count = len(self._rows)
        self._at = max(0, min(self._at, count - 1))
        last = max(count - self._room, 0)
        self._first = max(self._at - self._room + 1, min(self._first, self._at, last))

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        styles = looks(is_dark=self.app.current_theme.dark)
        table = fitting(width - len(_MARK))
        if y == 0:
            heads = (fitted(column.heading, size, to_right=column.to_right) for column, size in table)
            line = " " * len(_MARK) + " ".join(heads)
            return Strip([Segment(line, base + styles["head"])]).adjust_cell_length(width, base)
        index = self._first + y - 1
        if not 0 <= index < len(self._rows):
            return Strip.blank(width, base)
        row, is_here = self._rows[index], index == self._at
        if is_here:
            base += styles["cursor"]
        segments = [Segment(_MARK if is_here else " " * len(_MARK), base)]
        for column, size in table:
            text, look = column.cell(row)
            style = base + styles[look] if look else base
            segments += [Segment(fitted(text, size, to_right=column.to_right), style), Segment(" ", base)]
        return Strip(segments).adjust_cell_length(width, base)
