"""Strings of the watched program, shown safely; counts, and places in files.

Names, sources and scenes come from the watched program and its users: none of them may move a cursor,
recolour a terminal, reverse the reading order or break a line where people read reports.
"""

from __future__ import annotations

import unicodedata

# Format characters (Cf) hold the bidirectional overrides; Cs, lone surrogates, cannot be encoded at all.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_ELLIPSIS = "..."

_LIBRARY_FOLDERS = ("site-packages", "dist-packages")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")  # RFC 3986


def printable(text: str, limit: int | None = None) -> str:
    """The text in one line, with every control, format and unpaired character written as an escape.

    Cut in its middle to `limit` characters: both ends of a path or a qualified name matter.
    """
    if limit is not None and len(text) > 2 * limit:
        text = text[:limit] + text[-limit:]
    if not (text.isascii() and text.isprintable()):
        text = "".join(_visible(character) for character in text)
    if limit is None or len(text) <= limit:
        return text
    if limit <= len(_ELLIPSIS):
        return text[:limit]
    kept = limit - len(_ELLIPSIS)
    return text[: kept - kept // 2] + _ELLIPSIS + (text[-(kept // 2) :] if kept > 1 else "")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode("ascii")


def count_of(number: int, noun: str) -> str:
    """`1 stall`, `12 stalls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def display_width(text: str) -> int:
    """Terminal columns of printable text: two for wide East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def underlined(source: str, column: int, end_column: int, width: int) -> tuple[str, str]:
    """A line of source and the line of marks below it: `^~~~` under the call that was being executed.

    Columns are 1-based characters, 0 unknown (no marks). Both lines are printable; a source line longer
    than `width` is cut so that the start of the call stays in view.
    """
    has_call = 1 <= column < end_column and column <= len(source)
    before, call, after = source, "", ""
    if has_call:
        before, call, after = (
            source[: column - 1],
            source[column - 1 : end_column - 1],
            source[end_column - 1 :],
        )
    # The marks are placed by what is shown, not by what was read: an escape is wider than its character.
    before, call, after = printable(before), printable(call), printable(after)
    if has_call and display_width(before) + min(display_width(call), width // 2) > width:
        keep = max(width // 4, 1)
        before = _ELLIPSIS + before[-keep:]
    line = _cut(before + call + after, width)
    start = display_width(before)
    marks = min(display_width(call), display_width(line) - start)
    if not has_call or marks <= 0:
        return line, ""
    return line, " " * start + "^" + "~" * (marks - 1)


def _cut(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    used, end = len(_ELLIPSIS), 0
    for character in text:
        used += _columns(character)
        if used > width:
            break
        end += 1
    return text[:end] + _ELLIPSIS


def place(file: str, line: int, folder: str) -> str:
    """`path:line` as terminals and editors recognise it, relative to `folder` where it is below it."""
    shown = file.removeprefix(folder.rstrip("/") + "/") if folder else file
    return printable(f"{shown}:{line}" if line > 0 else shown)


def library_path(file: str) -> str:
    """The path below the library folder it lies in, `json/decoder.py`; the path as it is elsewhere."""
    parts = file.replace("\\", "/").split("/")
    for index, part in enumerate(parts[:-1]):
        is_library = part in _LIBRARY_FOLDERS or (part.startswith("python3") and parts[index - 1] == "lib")
        if is_library and parts[index + 1] not in _LIBRARY_FOLDERS:
            return "/".join(parts[index + 1 :])
    return file


def file_url(file: str, line: int) -> str | None:
    """A file URL for terminal hyperlinks; None for what is no absolute path, such as `<string>`."""
    if not file.startswith("/"):
        return None
    octets = file.encode("utf-8", "replace")
    path = "".join(chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in octets)
    return f"file://{path}#{line}" if line > 0 else f"file://{path}"
