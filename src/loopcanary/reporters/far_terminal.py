"""The stderr of another process, as its flight file describes it: keeps texts until they are shown there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from loopcanary.protocols.plugins import Look

_TEXT_BYTES = 8_192
"""Bytes of a text in a flight file: LC_KEEPER_TEXT_BYTES."""
_TEXTS_MAX = 64
_WIDTH_DEFAULT = 80
_WIDTH_LEAST, _WIDTH_MOST = 40, 120


class FarTerminal:
    """See protocols.plugins.TextScreen. The keeper's FlightLife puts the texts on the page; later ones take
    the place of those that are not shown in time."""

    def __init__(self, facts: Mapping[str, Any], folder: str) -> None:
        """`facts` are the process's own about its stderr, and may be anything; `folder` is its folder."""
        columns = facts.get("columns")
        width = columns if isinstance(columns, int) and columns > 0 else _WIDTH_DEFAULT
        self._is_terminal = facts.get("terminal") is True
        self._look = Look(
            colour=facts.get("color") is True,
            links=facts.get("links") is True,
            width=min(max(width, _WIDTH_LEAST), _WIDTH_MOST) if self._is_terminal else _WIDTH_DEFAULT,
            folder=folder,
        )
        self._texts: deque[bytes] = deque()
        self.dropped = 0
        """The number of texts that were replaced."""

    def write(self, block: str) -> bool:
        """Keeps the block; one without a line's end, such as a bell, joins the one before it."""
        if not block.endswith("\n"):
            block = (self._texts.pop().decode().removesuffix("\n") if self._texts else "") + block + "\n"
        for text in _texts(block.encode("utf-8", "backslashreplace")):
            self._texts.append(text)
            if len(self._texts) > _TEXTS_MAX:
                self._texts.popleft()
                self.dropped += 1
        return True

    def is_terminal(self) -> bool:
        return self._is_terminal

    def look(self) -> Look:
        """The abilities of the terminal at its process's start."""
        return self._look

    @property
    def first(self) -> bytes | None:
        """The oldest text; None: there is none."""
        return self._texts[0] if self._texts else None

    def shown(self) -> None:
        """Removes the first text, which was handed on."""
        self._texts.popleft()


def _texts(block: bytes) -> Iterator[bytes]:
    """The block in parts of whole lines; cuts a line that is too long."""
    part = b""
    for line in block.splitlines(keepends=True):
        cut = line if len(line) <= _TEXT_BYTES else line[: _TEXT_BYTES - 1] + b"\n"
        if len(part) + len(cut) > _TEXT_BYTES:
            yield part
            part = b""
        part += cut
    if part:
        yield part
