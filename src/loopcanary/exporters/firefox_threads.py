"""The tables of one thread of a Firefox profile."""

from __future__ import annotations

from typing import IO, Any, Final

from loopcanary.exporters.columns import Columns, Spool
from loopcanary.exporters.texts import encoded, frame_name, whole
from loopcanary.model import StackFrame

CATEGORIES: Final = [
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
    {"name": "Own code", "color": "orange", "subcategories": ["Other"]},
    {"name": "Libraries", "color": "lightblue", "subcategories": ["Other"]},
]
_OTHER, _OWN, _LIBRARIES = 0, 1, 2
_INTERVAL = 1
"""The phase of a marker with a begin and an end."""


class ThreadTables:
    """Samples, markers, and the stacks, frames, functions and strings that they speak of."""

    def __init__(self, spool: Spool) -> None:
        self._strings: dict[str, int] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._samples = Columns(spool, "stack", "time", "weight")
        self._markers = Columns(spool, "data", "name", "startTime", "endTime", "phase", "category")
        self._stacks = Columns(spool, "frame", "prefix", "category", "subcategory")
        self._frames = Columns(
            spool,
            *("address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID"),
            *("implementation", "line", "column"),
        )
        self._functions = Columns(
            spool, *("isJS", "relevantForJS", "name", "resource", "fileName", "lineNumber", "columnNumber")
        )

    def sample(self, stack: int | None, at_ms: float, weight: float) -> None:
        self._samples.add(stack, at_ms, weight)

    def marker(self, name: str, begin_ms: float, end_ms: float, data: dict[str, Any]) -> None:
        self._markers.add(data, self._string(name), begin_ms, end_ms, _INTERVAL, _OTHER)

    def stack(self, frames: tuple[StackFrame, ...]) -> int | None:
        """Number of a stack, outermost frame first; None of an empty one."""
        prefix: int | None = None
        for frame in frames:
            category = _OWN if frame.in_app else _LIBRARIES
            number, is_new = self._number("stack", prefix, self._frame(frame, category))
            if is_new:
                self._stacks.add(self._frame(frame, category), prefix, category, 0)
            prefix = number
        return prefix

    def _frame(self, frame: StackFrame, category: int) -> int:
        function = self._function(frame)
        number, is_new = self._number("frame", function, frame.line, category)
        if is_new:
            line = frame.line if frame.line > 0 else None
            self._frames.add(-1, 0, category, 0, function, None, None, None, line, None)
        return number

    def _function(self, frame: StackFrame) -> int:
        name, file = self._string(frame_name(frame)), self._string(whole(frame.file)) if frame.file else None
        number, is_new = self._number("function", name, file)
        if is_new:
            self._functions.add(False, False, name, -1, file, None, None)
        return number

    def _number(self, *key: Any) -> tuple[int, bool]:
        """Number of a row among those of its table, and whether it is new."""
        known = self._numbers.get(key)
        if known is not None:
            return known, False
        count = self._numbers.get((key[0],), 0)
        self._numbers[(key[0],)] = count + 1
        self._numbers[key] = count
        return count, True

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def copy_to(self, out: IO[bytes], facts: dict[str, Any], weight_type: str) -> None:
        """Writes the thread as an object that begins with these facts."""
        out.write(encoded(facts)[:-1].encode("ascii"))
        for name, columns, more in (
            ("samples", self._samples, {"weightType": weight_type}),
            ("markers", self._markers, {}),
            ("stackTable", self._stacks, {}),
            ("frameTable", self._frames, {}),
            ("funcTable", self._functions, {}),
        ):
            out.write(f',"{name}":'.encode("ascii"))
            columns.copy_to(out, **more)
        for name, empty in (
            ("resourceTable", ("lib", "name", "host", "type")),
            ("nativeSymbols", ("libIndex", "address", "name", "functionSize")),
        ):
            table: dict[str, Any] = {**{column: [] for column in empty}, "length": 0}
            out.write(f',"{name}":{encoded(table)}'.encode("ascii"))
        out.write(b',"stringArray":[')
        for number, text in enumerate(self._strings):
            out.write((b"," if number else b"") + encoded(text).encode("ascii"))
        out.write(b"]}")
