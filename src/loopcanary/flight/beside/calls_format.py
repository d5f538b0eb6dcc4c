"""The format of a file of calls, stated as data: the same facts as native/core/methods/calls_format.h
(tests/methods/test_calls_agreement.py). What the fields mean: docs/internals/calls-format.md."""

from __future__ import annotations

from typing import Final

from loopcanary.flight.format import Layout

MAGIC: Final = b"LCCALLS\0"
VERSION: Final = 3
BYTE_ORDER: Final = 0x01020304
OPEN_MAX: Final = 4096
MARKS: Final = 4096
MARK_WORDS: Final = 4096
SLOW_OFFSET: Final = 2048
SLOW_MAX: Final = 64
TIME_BITS: Final = 43
WORK: Final = 1 << 19
WORK_OTHER: Final = WORK + 1
WORDS_LEAST: Final = 1 << 12
WORDS_MOST: Final = 1 << 22

HEADER: Final = Layout(
    "lc_calls_header",
    """
    8s magic
    I version byte_order
    Q file_bytes words tid opened_ns base_ticks us_q64 closed_ns written depth at_work slow
    """,
)
OPEN: Final = Layout("lc_open_call", "Q id us")
SLOW: Final = Layout("lc_slow_call", "Q id begin_us end_us end")

OPEN_OFFSET: Final = 4096
MARKS_OFFSET: Final = OPEN_OFFSET + OPEN_MAX * OPEN.size
WORDS_OFFSET: Final = MARKS_OFFSET + MARKS * 8
