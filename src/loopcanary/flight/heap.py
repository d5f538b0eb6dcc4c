"""The heap of a slot: strings, code objects and stacks, referred to by offset.

No offset makes it read more than the heap holds: a writer stores each stack and each code
object once, so the frames of all distinct stacks together cannot be more than fit into the heap. The
budget of a damaged slot, whose stacks overlap, is that number too.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from struct import Struct
from typing import Any, Final

from loopcanary.flight import format as layout
from loopcanary.model import Frame, Stack

_FRAME_LIMIT: Final = 16384
_CIRCLE_LIMIT: Final = 64


@lru_cache(maxsize=64)
def _raw_frames(count: int) -> Struct:
    """Reads `count` frames that lie one after the other."""
    return Struct(f"{layout.FRAME.size}s" * count)


class SlotHeap:
    """Reads the heap in a copy of a slot. Equal offsets give the same object."""

    def __init__(self, data: bytes, used: int) -> None:
        """`used`: offset one past the last byte that was whole when the copy was made."""
        self._data = data
        self._end = min(used, len(data))
        self._budget = min(max(self._end - layout.SLOT_HEAP_OFFSET, 0) // layout.FRAME.size, _FRAME_LIMIT)
        self._strings: dict[tuple[int, int], str] = {}
        self._codes: dict[int, tuple[str, str, int, int] | None] = {}
        self._frames: dict[bytes, Frame] = {}
        self._stacks: dict[int, Stack | None] = {}

    def text(self, ref: bytes) -> str | None:
        """The string that an lc_ref refers to; None for no reference and for one out of the heap."""
        offset, size = layout.REF.struct.unpack(ref)
        if not self.holds(offset, size):
            return None
        key = (offset, min(size, layout.STRING_MAX))
        text = self._strings.get(key)
        if text is None:
            text = self._data[offset : offset + key[1]].decode("utf-8", "replace")
            self._strings[key] = text
        return text

    def thread_names(self, offset: int) -> tuple[tuple[int, str], ...]:
        """(thread id, name) of the entry at this offset and of those before it, the first one first."""
        found = []
        end = self._end
        while self.holds(offset, layout.THREAD_NAME.size) and offset <= end - layout.THREAD_NAME.size:
            tid, before, ref = layout.THREAD_NAME.struct.unpack_from(self._data, offset)
            found.append((tid, self.text(ref) or ""))
            offset, end = before, offset
        return tuple(reversed(found))

    def waits(self, offset: int) -> tuple[tuple[Any, ...], ...]:
        """Fields of the lc_wait_entry at this offset and of those before it, the first one first."""
        found = []
        end = self._end
        while self.holds(offset, layout.WAIT.size) and offset <= end - layout.WAIT.size:
            fields = layout.WAIT.struct.unpack_from(self._data, offset)
            found.append(fields)
            offset, end = fields[1], offset
        return tuple(reversed(found[-_CIRCLE_LIMIT:]))

    def stack(self, offset: int) -> Stack | None:
        """The stack at this offset; None for none, and for one that does not lie in the heap."""
        if offset == layout.NO_REF:
            return None
        if offset not in self._stacks:
            self._stacks[offset] = self._read_stack(offset)
        return self._stacks[offset]

    def frame(self, raw: bytes) -> Frame | None:
        """The frame of an lc_frame_entry; None: its code object does not lie in the heap."""
        return self._frames[raw] if raw in self._frames or self._read_frame(raw) else None

    def holds(self, offset: int, size: int) -> bool:
        """Whether these bytes are in use."""
        return bool(layout.SLOT_HEAP_OFFSET <= offset <= self._end - size)

    def _read_stack(self, offset: int) -> Stack | None:
        if not self.holds(offset, layout.STACK.size):
            return None
        count, flags, _hash = layout.STACK.struct.unpack_from(self._data, offset)
        begin = offset + layout.STACK.size
        room = min((self._end - begin) // layout.FRAME.size, layout.STACK_FRAMES_MAX, self._budget)
        there = min(count, room)
        self._budget -= there
        frames = self._read_frames(_raw_frames(there).unpack_from(self._data, begin))
        cut = len(frames) < count or bool(flags & layout.STACK_TRUNCATED)
        inner_cut = bool(flags & layout.STACK_INNER_CUT)
        return Stack(frames=frames, truncated=cut, inner_cut=inner_cut)

    def _read_frames(self, raws: tuple[bytes, ...]) -> tuple[Frame, ...]:
        known = self._frames
        for count, raw in enumerate(raws):
            if raw in known:
                break  # mostly only the inner frames of a stack are new
            if not self._read_frame(raw):
                return tuple([known[before] for before in raws[:count]])
        try:
            return tuple([known[raw] for raw in raws])
        except KeyError:
            # What lies outside of a damaged frame is not known to be its caller.
            whole = takewhile(lambda raw: raw in known or self._read_frame(raw), raws)
            return tuple([known[raw] for raw in whole])

    def _read_frame(self, raw: bytes) -> bool:
        """Whether the frame could be read; then it is in `_frames`."""
        code_at, line, end_line, column, end_column = layout.FRAME.struct.unpack(raw)
        code = self._code(code_at)
        if code is None:
            return False
        qualname, file, first_line, code_flags = code
        self._frames[raw] = Frame(
            qualname=qualname,
            file=file,
            line=line,
            end_line=end_line,
            column=column,
            end_column=end_column,
            first_line=first_line,
            code_flags=code_flags,
        )
        return True

    def _code(self, offset: int) -> tuple[str, str, int, int] | None:
        if offset not in self._codes:
            self._codes[offset] = self._read_code(offset)
        return self._codes[offset]

    def _read_code(self, offset: int) -> tuple[str, str, int, int] | None:
        if not self.holds(offset, layout.CODE.size):
            return None
        filename, qualname, first_line, code_flags = layout.CODE.struct.unpack_from(self._data, offset)
        return self.text(qualname) or "?", self.text(filename) or "?", first_line, code_flags
