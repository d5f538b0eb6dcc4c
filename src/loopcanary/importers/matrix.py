"""Issues of Matrix (Tencent/matrix): as JSON, on one line or many, whole or cut; as `tag[..]type[..];
key[..];content[..]`; as its sample prints them (`ISSUE TAG`, `ISSUE Content`); the rows of a stack alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loopcanary.importers.matrix_calls import row_of
from loopcanary.importers.matrix_issue import seen_in
from loopcanary.importers.sources import says_nothing
from loopcanary.protocols.imports import Blocked, Line, Seen, SeenCall

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|"|[][{},]', re.DOTALL)
_HALF = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_TEXT = re.compile(
    rf'(?:[^"\\]|\\[^u]|{_HALF}\\u[0-9a-fA-F]{{4}}|(?!{_HALF})\\u[0-9a-fA-F]{{4}})*', re.DOTALL
)
"""Up to an escape that is not whole; two of them may be one character."""
_CLOSING = {"{": "}", "[": "]"}
_DEPTH_MAX = 50


def begin_of(text: str) -> Any:
    """Reads JSON that ends in the middle (a paste that was cut, a log whose process was killed): the value as
    far as it goes, with the beginning of a cut text and without a cut number. None: it is not cut, or nothing
    of it can be read. Raises nothing."""
    still_open: list[str] = []
    until, left = 0, ""  # how far it is whole, and what is open there
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':  # without an end
            rest = _TEXT.match(text, token.end())
            begun = text[: rest.end()] if rest is not None else text
            value = _closed(f'{begun}"', "".join(still_open))
            return _closed(text[:until], left) if value is None else value
        if mark in _CLOSING:
            still_open.append(mark)
        elif mark in ("}", "]") and (not still_open or _CLOSING[still_open.pop()] != mark):
            return None
        if len(still_open) > _DEPTH_MAX or (until and not still_open):
            return None
        if mark[0] != '"':
            until, left = token.start() if mark == "," else token.end(), "".join(still_open)
    return _closed(text[:until], left)


def _closed(text: str, still_open: str) -> Any:
    if not still_open:
        return None
    try:
        return json.loads(text + "".join(_CLOSING[mark] for mark in reversed(still_open)), strict=False)
    except (ValueError, RecursionError):
        return None


_MS = 1_000_000
_JOINED_MAX = 400
"""Lines of one issue."""
_ISSUE_MAX = 1 << 20
_VALUES_MAX = 10_000
"""Issues on one line."""
_BUDGET = 64 << 20
"""Characters that may be read in vain."""
_LINE_COST = 50
_PRINTED_MAX = 2_000
"""Lines of an issue that is printed key by key."""
_PRINTED = re.compile(r"\s*ISSUE (TAG|TYPE|KEY|Content|Time Stamp): ?(.*)")
_WRAPPED = re.compile(r"tag\[([\w.-]{1,100})\]type\[(\d{1,9}|null)\]", re.ASCII)
_HEAD = re.compile(r"tag : [\w.-]{1,100}", re.ASCII)
_FIELD = re.compile(r"\s+([A-Za-z_]{2,40}) : (.*)")
_LISTED = re.compile(r"\s*([A-Za-z_]{2,40}) :(?: (.*))?")
"""The first keys of an issue that the sample's page or an app's own listener prints."""
_FIRST = ("tag", "machine")
_PROSE = ("sql", "desc", "detail", "advice")
"""Keys of SQLiteLint, after which any lines may follow."""
_HAPPENS = re.compile(r".*maybe happens (?:Jankiness|ANR)!? ?\((\d{1,9}) ?ms\).*", re.ASCII)
_SCENE = re.compile(r"[|*\s]*Scene: (\S{1,300})\s*")
_FEWEST_ROWS = 2
_wrong = (ValueError, RecursionError)


class MatrixImporter:
    words = (
        "issues of Matrix (trace, io, SQLiteLint, resource): JSON, text, rows of a stack; names from a "
        "methodMapping beside them"
    )

    def find(self, lines: Sequence[Line], *, near_wall_ns: int) -> Iterator[Seen]:  # noqa: ARG002
        reader = _FormReader(lines)
        while reader.finds_begin():
            yield from reader.step()


class _FormReader:
    """Goes through lines, from one that can begin a form to the next."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._decoder = json.JSONDecoder(strict=False)
        self._budget = _BUDGET
        self.at = 0

    def finds_begin(self) -> bool:
        """Goes to the next line that some form may begin with; False: there is none."""
        while self.at < len(self._lines):
            if _may_begin(self._lines[self.at].text):
                return True
            self.at += 1
        return False

    def step(self) -> Iterator[Seen]:
        text = self._lines[self.at].text
        if "{" in text and ('"' in text or text.strip() == "{"):
            yield from self._as_json(text)
        elif _PRINTED.fullmatch(text) or self._is_headed(text):
            yield from self._printed()
        elif self._is_list(text):
            yield from self._listed()
        elif found := _HAPPENS.fullmatch(text):
            yield from self._happened(int(found[1]))
        elif row_of(text) is not None:
            yield from self._rows(0)
        else:
            self.at += 1

    def _is_headed(self, text: str) -> bool:
        """Whether an issue is printed below the line: `tag : io`, its type and key, `ISSUE Content:`."""
        below = self._lines[self.at + 1 : self.at + 4]
        return _HEAD.fullmatch(text) is not None and any(_PRINTED.fullmatch(line.text) for line in below)

    def _as_json(self, text: str) -> Iterator[Seen]:
        begin = self.at
        pieces = [text]
        size, still_open = 0, 0
        for end in range(begin + 1, min(begin + _JOINED_MAX, len(self._lines)) + 1):
            size += len(pieces[-1])
            still_open += pieces[-1].count("{") - pieces[-1].count("}")
            # Braces in texts count, too: those of most issues are balanced.
            if still_open <= 0 or (end == begin + 1 and self._is_whole(text)):
                found = self._decoded(pieces)
                if found:
                    self.at = end
                    for value, wrapped in found:
                        yield from _of_value(value, self._numbers(begin, end), wrapped)
                    return
                self._budget -= size
            if self._budget < 0 or end == len(self._lines) or size > _ISSUE_MAX:
                break
            pieces.append(self._lines[end].text)
        self._budget -= size + _LINE_COST * len(pieces)
        self.at = begin + 1
        if self._budget >= 0:
            yield from self._cut(begin, pieces)

    def _is_whole(self, text: str) -> bool:
        """Whether the line is one issue, though its braces are not balanced."""
        try:
            _, end = self._decoder.raw_decode(text, text.index("{"))
        except _wrong:
            return False
        return "{" not in text[end:]

    def _decoded(self, pieces: list[str]) -> list[tuple[Any, re.Match[str] | None]]:
        """The values, each with the text around it; empty: it is not JSON."""
        for joint in _joints(pieces):
            text, at = joint.join(pieces), 0
            found: list[tuple[Any, re.Match[str] | None]] = []
            while (begin := text.find("{", at)) >= 0 and len(found) < _VALUES_MAX:
                try:
                    value, end = self._decoder.raw_decode(text, begin)
                except _wrong:
                    break
                found.append((value, _WRAPPED.search(text, at, begin)))
                at = end
            if found:
                return found
        return []

    def _cut(self, begin: int, pieces: list[str]) -> Iterator[Seen]:
        """Reads an issue that ends in the middle: with the text, before another issue or before an empty
        line."""
        ends = (at for at, piece in enumerate(pieces) if at and _is_over(piece))
        count = next(ends, len(pieces))
        text = _joints(pieces[:count])[0].join(pieces[:count])
        at = text.index("{")
        found = list(
            _of_value(begin_of(text[at:]), self._numbers(begin, begin + count), _WRAPPED.search(text, 0, at))
        )
        if found:
            self.at = begin + count
            yield from found

    def _numbers(self, begin: int, end: int) -> tuple[int, ...]:
        return tuple(line.number for line in self._lines[begin:end])

    def _printed(self) -> Iterator[Seen]:
        """Reads a block of the sample's log: a key on each line, whose value may go on below."""
        content: dict[str, Any] = {}
        key, begin, is_content = "", self.at, False
        while self.at < min(begin + _PRINTED_MAX, len(self._lines)):
            text = self._lines[self.at].text
            if found := _PRINTED.fullmatch(text):
                if is_content:
                    break
                is_content = found[1] == "Content"
                if found[1] == "TAG":
                    content["tag"] = found[2].strip()
            elif is_content and (field := _FIELD.fullmatch(text)):
                key, content[field[1]] = field[1], field[2]
            elif says_nothing(text):
                key = "" if key in _PROSE else key
            elif is_content and key and (_is_prose(key, content) or row_of(text) or "(" in text):
                content[key] += f"\n{text}"
            elif is_content:
                break
            self.at += 1
        yield from _of_value(_with_objects(content), self._numbers(begin, self.at))

    def _is_list(self, text: str) -> bool:
        found = _LISTED.fullmatch(text) if " :" in text else None
        below = self._lines[self.at + 1 : self.at + 4]
        return (
            found is not None
            and found[1] in _FIRST
            and len(below) > 2
            and all(_LISTED.fullmatch(line.text) for line in below)
        )

    def _listed(self) -> Iterator[Seen]:
        """Reads keys and values alone, the issue's own before or after those of its content."""
        content: dict[str, Any] = {}
        key, begin = "", self.at
        while self.at < min(begin + _PRINTED_MAX, len(self._lines)):
            text = self._lines[self.at].text
            if found := _LISTED.fullmatch(text):
                if found[1] in content and found[1] in _FIRST:
                    break  # the next one
                key, content[found[1]] = found[1], found[2] or ""
            elif row_of(text) or "(" in text:
                content[key] += f"\n{text}"
            elif not says_nothing(text):
                break
            self.at += 1
        yield from _of_value(content, self._numbers(begin, self.at))

    def _happened(self, cost_ms: int) -> Iterator[Seen]:
        """Reads what Matrix prints to logcat, up to its rows."""
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
            numbers = self._numbers(first, self.at)
            yield Blocked(
                tool="Matrix", lines=numbers, duration_ns=lasted * _MS, calls=tuple(rows), scene=scene
            )


def _is_prose(key: str, content: Mapping[str, Any]) -> bool:
    return key in _PROSE and (content.get("tag") == "SQLiteLint" or "dbPath" in content)


def _with_objects(content: dict[str, Any]) -> dict[str, Any]:
    for key, value in content.items():
        if isinstance(value, str) and value.startswith("{"):
            try:
                content[key] = json.loads(value)
            except _wrong:
                continue
    return content


def _joints(pieces: list[str]) -> tuple[str, str]:
    """What may have been between the lines, the likelier first: lines of one length were cut by the printer,
    others ended where a text in them has its line ends."""
    are_cut = all(len(piece) == len(pieces[0]) for piece in pieces[:-1])
    return ("", "\n") if are_cut else ("\n", "")


def _may_begin(text: str) -> bool:
    """Whether a form may begin with such a line. It is asked of each line, and few pass."""
    return (
        "{" in text
        or " :" in text
        or text.lstrip(" \t\v\f.|*")[:1].isdigit()
        or "ISSUE " in text
        or "maybe happens" in text
    )


def _is_over(line: str) -> bool:
    return (
        says_nothing(line) or line.lstrip().startswith(("{", "ISSUE ")) or _WRAPPED.search(line) is not None
    )


def _of_value(value: Any, numbers: tuple[int, ...], wrapped: re.Match[str] | None = None) -> Iterator[Seen]:
    """`wrapped` is the text around the content, which mostly has tag and type itself."""
    if not isinstance(value, dict):
        return
    inner = _with_objects({"content": value.get("content")})["content"]
    if isinstance(inner, dict):
        value = {**value, **inner}
    if wrapped is not None:
        value = {"tag": wrapped[1], "type": wrapped[2], **value}
    yield from seen_in(value, numbers)


MATRIX = MatrixImporter()
