"""Issues of Matrix's TraceCanary (Tencent/matrix): as JSON, on one line or many; as `tag[..]type[..];
key[..];content[..]`; as its sample prints them (`ISSUE TAG`, `ISSUE Content`); the rows of a stack alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from loopcanary.importers.matrix_issue import seen_in
from loopcanary.importers.matrix_rows import row_of
from loopcanary.protocols.imports import Blocked, Line, SeenCall, SeenFrames

_MS = 1_000_000
_JOINED_MAX = 400
"""Lines that one issue is spread over."""
_ISSUE_MAX = 1 << 20
_BUDGET = 64 << 20
"""Characters that are looked at in vain."""
_LINE_COST = 50
_PRINTED = re.compile(r"\s*ISSUE (TAG|KEY|Content|Time Stamp): ?(.*)")
_FIELD = re.compile(r"\s+([A-Za-z_]{2,40}) : (.*)")
_HAPPENS = re.compile(r".*maybe happens (?:Jankiness|ANR)!? ?\((\d{1,9}) ?ms\).*", re.ASCII)
_SCENE = re.compile(r"[|*\s]*Scene: (\S{1,300})\s*")
_FEWEST_ROWS = 2
_wrong = (ValueError, RecursionError)


class MatrixImporter:
    """See protocols.imports.TextImporter."""

    words = (
        "issues of Matrix's TraceCanary: JSON, text, rows of a stack; names from a methodMapping beside them"
    )

    def find(self, lines: Sequence[Line], *, near_wall_ns: int) -> Iterator[Blocked | SeenFrames]:  # noqa: ARG002
        reader = _FormReader(lines)
        while reader.at < len(lines):
            yield from reader.step()


class _FormReader:
    """Goes through lines; each form begins at one that shows it."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._decoder = json.JSONDecoder(strict=False)
        self._budget = _BUDGET
        self.at = 0

    def step(self) -> Iterator[Blocked | SeenFrames]:
        text = self._lines[self.at].text
        if "{" in text and ('"' in text or text.strip() == "{"):
            yield from self._as_json(text)
        elif _PRINTED.fullmatch(text):
            yield from self._printed()
        elif found := _HAPPENS.fullmatch(text):
            yield from self._happened(int(found[1]))
        elif row_of(text) is not None:
            yield from self._rows(0)
        else:
            self.at += 1

    def _as_json(self, text: str) -> Iterator[Blocked | SeenFrames]:
        begin = self.at
        pieces = [text[text.index("{") :]]
        size, still_open = 0, 0
        for end in range(begin + 1, min(begin + _JOINED_MAX, len(self._lines)) + 1):
            size += len(pieces[-1])
            still_open += pieces[-1].count("{") - pieces[-1].count("}")
            if still_open <= 0:  # braces in texts count, too: an issue's are balanced
                try:
                    value, _ = self._decoder.raw_decode("".join(pieces))
                except _wrong:
                    self._budget -= size
                else:
                    self.at = end
                    yield from _of_value(value, tuple(line.number for line in self._lines[begin:end]))
                    return
            if self._budget < 0 or end == len(self._lines) or size > _ISSUE_MAX:
                break
            pieces.append(self._lines[end].text)
        self._budget -= size + _LINE_COST * len(pieces)
        self.at = begin + 1

    def _printed(self) -> Iterator[Blocked | SeenFrames]:
        """A block of the sample's log: each key on a line, its value may go on below."""
        content: dict[str, Any] = {}
        key, begin, is_content = "", self.at, False
        while self.at < len(self._lines):
            text = self._lines[self.at].text
            if found := _PRINTED.fullmatch(text):
                if is_content:
                    break
                is_content = found[1] == "Content"
                if found[1] == "TAG":
                    content["tag"] = found[2].strip()
            elif is_content and (field := _FIELD.fullmatch(text)):
                key, content[field[1]] = field[1], field[2]
            elif is_content and key and text.strip() and (row_of(text) or "(" in text):
                content[key] += f"\n{text}"
            elif is_content and text.strip():
                break
            self.at += 1
        yield from _of_value(
            _with_objects(content), tuple(line.number for line in self._lines[begin : self.at])
        )

    def _happened(self, cost_ms: int) -> Iterator[Blocked | SeenFrames]:
        """What is printed to logcat: up to its rows."""
        begin, scene = self.at, None
        self.at += 1
        while self.at < min(begin + 60, len(self._lines)):
            text = self._lines[self.at].text
            if found := _SCENE.fullmatch(text):
                scene = found[1]
            if row_of(text) is not None:
                yield from self._rows(cost_ms, begin, scene)
                return
            if _HAPPENS.fullmatch(text):
                return
            self.at += 1

    def _rows(self, cost_ms: int, begin: int | None = None, scene: str | None = None) -> Iterator[Blocked]:
        rows: list[SeenCall] = []
        first = self.at if begin is None else begin
        while self.at < len(self._lines) and (row := row_of(self._lines[self.at].text)) is not None:
            if rows and begin is None and row.depth == 0:
                break  # of the next one
            rows.append(row)
            self.at += 1
        is_tree = rows[0].depth == 0 and (len(rows) >= _FEWEST_ROWS or begin is not None)
        if is_tree and (lasted := cost_ms or max(row.cost_ms for row in rows)):
            numbers = tuple(line.number for line in self._lines[first : self.at])
            yield Blocked(
                tool="Matrix", lines=numbers, duration_ns=lasted * _MS, calls=tuple(rows), scene=scene
            )


def _with_objects(content: dict[str, Any]) -> dict[str, Any]:
    for key, value in content.items():
        if isinstance(value, str) and value.startswith("{"):
            try:
                content[key] = json.loads(value)
            except _wrong:
                continue
    return content


def _of_value(value: Any, numbers: tuple[int, ...]) -> Iterator[Blocked | SeenFrames]:
    if not isinstance(value, dict):
        return
    inner = value.get("content")
    if isinstance(inner, dict):
        value = {**value, **inner}
    yield from seen_in(value, numbers)


MATRIX = MatrixImporter()
