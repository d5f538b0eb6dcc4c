"""The text of the call that a frame was in, from its columns (PEP 657)."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from loopcanary.diagnosis.code.stack_frames import PlacedFrame
from loopcanary.diagnosis.code.syntax import (
    block_at,
    headers_around,
    is_loop,
    is_loop_head,
    is_repeated,
    parses,
    statement,
)
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Frame
from loopcanary.source_text import SourceLines, SourceReader

CALL_TEXT_MAX = 80
_CALL_LINES_MAX = 60
_CHAIN_LINES_MAX = 12
_CALLEE_MAX = 60
_LEAD = re.compile(r"^(?:return |yield |[\w.\[\]\"', ]+(?::[^=]+)? [-+*/|&]?= |\(|await )+")
_HEADED = re.compile(r"(?:async )?(?:with|for|while|class|def) ")
_DELETES = re.compile(r"(?:^|[\s:;])del $")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """Where in the source a frame was. All None or 0 where the source is missing or has changed."""

    text: str | None = None
    """The call as written, on one line, cut at 80 characters."""
    callee: str | None = None
    """Its dotted name, such as `json.loads`; None where the text is not a call."""
    source: str | None = None
    column: int = 0
    """Of the text in `source`: characters from 1; 0 where it begins on another line."""
    end_column: int = 0


NO_SITE = CallSite()


class CallSites:
    """Finds call sites, each once. Not thread-safe."""

    def __init__(self, sources: SourceReader, session_started_wall_ns: int) -> None:
        self._sources = sources
        self._started_wall_ns = session_started_wall_ns
        self._texts: dict[str, SourceLines | None] = {}
        self._sites: dict[PlacedFrame, CallSite] = {}
        self._repeated: dict[PlacedFrame, tuple[bool, bool] | None] = {}

    def of(self, view: PlacedFrame) -> CallSite:
        """The call that a frame was in."""
        site = self._sites.get(view)
        if site is None:
            site = self._sites[view] = self._find(view)
        return site

    def repetition(self, view: PlacedFrame) -> tuple[bool, bool] | None:
        """Whether a loop of the frame's own function repeats its position, and whether it is in the head of
        a `for`; None without the source."""
        if view not in self._repeated:
            self._repeated[view] = self._look_for_loop(view)
        return self._repeated[view]

    def blocks(self, view: PlacedFrame) -> tuple[tuple[int, str], ...]:
        """Line and text of the headers of the blocks that a frame was in, innermost first; none without the
        source."""
        text = self._text(view)
        return () if text is None else tuple(headers_around(text.lines, view.frame))

    def loop_around(self, view: PlacedFrame) -> tuple[str, ...]:
        """The lines of the innermost loop that repeats a frame; none without one, or without the source."""
        text, repeated = self._source(view.frame.file), self.repetition(view)
        if text is None or repeated is None or not repeated[0]:
            return ()
        headers = (row for row, header in self.blocks(view) if is_loop(header))
        return block_at(text.lines, next(headers, view.frame.line))

    def lines_before(self, view: PlacedFrame) -> tuple[str, ...]:
        """The lines of a frame's function before its own; none without the source."""
        text, blocks = self._text(view), self.blocks(view)
        return text.lines[blocks[-1][0] - 1 : view.frame.line - 1] if text is not None and blocks else ()

    def function_lines(self, view: PlacedFrame) -> tuple[str, ...]:
        """The lines of a frame's function; none without the source."""
        text, blocks = self._text(view), self.blocks(view)
        return block_at(text.lines, blocks[-1][0]) if text is not None and blocks else ()

    def lines_of(self, file: str) -> tuple[str, ...]:
        """The lines of a file; none without the source."""
        text = self._source(file)
        return () if text is None else text.lines

    def defines(self, file: str, name: str) -> bool:
        return any(line.lstrip().startswith(f"def {name}(") for line in self.lines_of(file))

    def _look_for_loop(self, view: PlacedFrame) -> tuple[bool, bool] | None:
        text = self._text(view)
        if text is None:
            return None
        return is_repeated(text.lines, view.frame), is_loop_head(text.lines, view.frame)

    def _find(self, view: PlacedFrame) -> CallSite:
        text = self._text(view)
        return NO_SITE if text is None else find_call(text.lines, view.frame)

    def _text(self, view: PlacedFrame) -> SourceLines | None:
        """The text that has the frame's line. None also where a file of the code's name has another text, as
        of a template."""
        if view.function.is_generated:
            return None
        text = self._source(view.frame.file)
        return text if text is not None and 1 <= view.frame.line <= len(text.lines) else None

    def _source(self, file: str) -> SourceLines | None:
        """The file's text. None if it was written after the run began: the process may run another text, and
        no text is better than a wrong one."""
        if file not in self._texts:
            text = self._sources.read(file)
            if text is not None and (text.modified_wall_ns or 0) > self._started_wall_ns > 0:
                text = None
            self._texts[file] = text
        return self._texts[file]


def find_call(lines: tuple[str, ...], frame: Frame) -> CallSite:
    """The call at a frame's columns. `frame.line` must be a line of `lines`."""
    first = lines[frame.line - 1]
    source = first.strip() or None
    if not (frame.column and frame.end_column):
        return CallSite(source=source)  # compiled without columns (-X no_debug_ranges)
    before, after = _split(first, frame.column - 1)
    if _HEADED.match(after):
        return _header(lines, frame)
    end_line = frame.end_line or frame.line
    if not frame.line <= end_line <= min(len(lines), frame.line + _CALL_LINES_MAX):
        return CallSite(source=source)
    pieces = _cut(lines[frame.line - 1 : end_line], frame.column - 1, frame.end_column - 1)
    if pieces is None or not pieces[0].strip():
        return NO_SITE  # the columns lie outside the line: another text was compiled
    last = _split(lines[end_line - 1], frame.end_column - 1)[1]
    if _DELETES.search(before) and not last.startswith((".", "[", "(")):  # its columns are the target's
        before, pieces = before[:-4], [f"del {pieces[0]}", *pieces[1:]]
    indent = len(first) - len(first.lstrip())
    column = len(before) - indent + 1
    on_one_line = end_line == frame.line
    whole = one_line(pieces)
    dangling = before.strip() == "."
    chain = _chain_head(lines, frame.line - 1) if dangling else ""
    return CallSite(
        text=shorten(chain + whole),
        callee=callee_of(chain + whole),
        source=source,
        column=column,
        end_column=column + len(pieces[0]) if on_one_line else len(first.rstrip()) - indent + 1,
    )


def _header(lines: tuple[str, ...], frame: Frame) -> CallSite:
    """A compound statement, whose columns span its whole body (`with` in 3.11): its header."""
    first = lines[frame.line - 1]
    body = first.encode()[frame.column - 1 :].decode(errors="replace")
    pieces = [body, *lines[frame.line : frame.line + _CHAIN_LINES_MAX]]
    for count in range(1, len(pieces) + 1):
        text = one_line(pieces[:count])
        end = header_end(text)
        if end is not None:
            column = first.find(body) - (len(first) - len(first.lstrip())) + 1
            header = text[:end]
            marked = column + end if count == 1 else len(first.strip()) + 1
            return CallSite(text=shorten(header), source=first.strip(), column=column, end_column=marked)
    return CallSite(source=first.strip() or None)


def header_end(text: str) -> int | None:
    """Index of a header's colon, outside of all brackets; None if it is on a later line."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == ":" and depth == 0:
            return index
    return None


def _cut(lines: tuple[str, ...], start: int, end: int) -> list[str] | None:
    """The text from byte `start` of the first line to byte `end` of the last; None if out of bounds."""
    if len(lines) == 1 and lines[0].isascii():
        return [lines[0][start:end]] if start < min(end, len(lines[0])) and end <= len(lines[0]) else None
    raw = [line.encode() for line in lines]
    if start >= len(raw[0]) or end > len(raw[-1]) or (len(raw) == 1 and end <= start):
        return None
    raw[-1] = raw[-1][:end]
    raw[0] = raw[0][start:]
    return [_decode(line) for line in raw]


def _split(line: str, octets: int) -> tuple[str, str]:
    """The line's text before and from a byte on."""
    if line.isascii():
        return line[:octets], line[octets:]
    raw = line.encode()
    return _decode(raw[:octets]), _decode(raw[octets:])


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def one_line(pieces: list[str]) -> str:
    """Joins a call written over several lines: comments left out, no space after `(` or before `)`."""
    if len(pieces) == 1:
        return pieces[0].strip()
    joined = ""
    for piece in _without_comments(pieces):
        part = piece.strip().removesuffix("\\").rstrip()
        if not part:
            continue
        tight = not joined or joined.endswith(("(", "[", "{")) or part.startswith((")", "]", "}", "."))
        if part.startswith((")", "]", "}")):
            joined = joined.rstrip(",")
        joined += part if tight else f" {part}"
    return joined


def _without_comments(pieces: list[str]) -> list[str]:
    lines = list(pieces)
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(pieces) + "\n").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError, IndexError):
        pass  # half an expression: only the comments before its end are cut
    return lines


def _chain_head(lines: tuple[str, ...], index: int) -> str:
    """The receiver of a call chain written one `.call()` a line, for a call that begins after the dot;
    `….` where it cannot be told."""
    above: list[str] = []
    for row in range(index - 1, max(-1, index - 1 - _CHAIN_LINES_MAX), -1):
        line = lines[row].strip()
        above.insert(0, line)
        if line.startswith("."):
            continue
        head = _LEAD.sub("", one_line(above))
        return f"{head}." if parses(head) else "…."
    return "…."


def shorten(text: str) -> str:
    """The text within 80 characters: arguments are cut before the name of what is called."""
    if len(text) <= CALL_TEXT_MAX:
        return text
    if not text.endswith(")"):
        return text[: CALL_TEXT_MAX - 1] + "…"
    start = _last_call(text)
    if start > _CALLEE_MAX:  # a long chain: its end says what was called
        text = "…" + text[start - _CALLEE_MAX + 1 :]
    return text if len(text) <= CALL_TEXT_MAX else text[: CALL_TEXT_MAX - 2] + "…)"


def _last_call(text: str) -> int:
    """Index of the bracket that opens the last call's arguments; brackets in strings may mislead it, at
    the price of a longer cut."""
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        if text[index] in ")]}":
            depth += 1
        elif text[index] in "([{":
            depth -= 1
            if depth == 0:
                return index
    return len(text)


def callee_of(text: str) -> str | None:
    """The dotted name of what a text calls, arguments and subscripts of its receivers left out:
    `await session.query(User).all()` -> `session.query.all`. None where the text is not a call."""
    bare = text.strip().removeprefix("await ").strip()
    if not bare.endswith(")"):
        return None
    head = bare[: _last_call(bare)]
    flat = _without_brackets(head).lstrip("….")
    if flat.startswith(("'", '"', "f'", 'f"', "b'", 'b"')):
        flat = f"str.{flat.rpartition('.')[2]}"
    match = _NAME.fullmatch(flat.strip("."))
    return match[0] if match else None


def operator_of(text: str) -> str | None:
    """The operator of a text that is not a call, by its function in the module `operator`; `del` of that
    statement. None for those that no advice is about."""
    try:
        found = statement(text)
    except (SyntaxError, ValueError, IndexError):
        return None
    match found:
        case ast.Delete():
            return "del"
        case ast.AugAssign(op=ast.Add()):
            return "operator.iadd"
        case ast.Expr(ast.BinOp(op=ast.Add())):
            return "operator.add"
        case ast.Expr(ast.Compare(ops=[ast.In() | ast.NotIn()])):
            return "operator.contains"
    return None


def _without_brackets(text: str) -> str:
    if "(" not in text and "[" not in text and "{" not in text:
        return text
    kept: list[str] = []
    depth = 0
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept)
