"""Frames and times as Java writes them, and whose code a frame is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from loopcanary.model import StackFrame
from loopcanary.protocols.imports import CodePlace

_FRAME = re.compile(r"\s*(?:at )?([^\s()]{3,600})\(([^()]{0,300})\)\s*")
_SPACED = re.compile(r"\s*at ([^\s()]{3,600}) \(([^()]{0,300})\)\s*")
_RETRACED = re.compile(
    r"\s*(?:at )?((?:[\w$]{1,200}\.){2,40})[\w$\[\]]{1,200} "
    r"([\w$<>]{1,200})\([^()]{0,300}\)\(([^()]{0,300})\)\s*"
)
_LINE_MAX = 10_000_000
CACHED_MAX = 1 << 14
CACHED_LENGTH_MAX = 300
"""Longer lines are not cached, so that the cache has tens of MiB at most."""
_STAMP = re.compile(r"\s*(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})\s*", re.ASCII)
_S = 1_000_000_000
_A_DAY_NS = 86_400 * _S
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(CACHED_MAX)
def _known_place(text: str) -> CodePlace | None:
    return read_place(text)


def place_of(text: str) -> CodePlace | None:
    """As `read_place`, with a cache for short lines: thousands of logs of one app have the same frames."""
    return _known_place(text) if "(" in text and len(text) <= CACHED_LENGTH_MAX else read_place(text)


def read_place(text: str) -> CodePlace | None:
    """Reads `com.foo.Bar.baz(Bar.java:42)`, with or without `at `; Matrix's `com.foo.Bar:baz(42)`; what R8's
    retrace writes with types: `com.foo.Bar.void baz(int)(Bar.java:42)`; and frames on Google Play's pages,
    with a space before the file. None: it is not a frame."""
    if "(" not in text:
        return None
    if (found := _FRAME.fullmatch(text) or _SPACED.fullmatch(text)) is not None:
        name, inside = found.groups()
    elif (found := _RETRACED.fullmatch(text)) is not None:
        name, inside = f"{_class_in(found[1])}.{found[2]}", found[3]
    else:
        return None
    mark = ":" if ":" in name else "."
    owner, _, method = name.rpartition(mark)
    if not owner or not method or ("." not in name and mark == "."):
        return None
    file, _, number = inside.rpartition(":") if ":" in inside else ("", "", inside)
    line = int(number) if number.isascii() and number.isdecimal() and len(number) <= 8 else 0
    if not file and not number.lstrip("-").isdecimal():
        file = inside
    known = file if "." in file and " " not in file and "/" not in file else ""
    return CodePlace(owner.rpartition("/")[2], method, known, min(line, _LINE_MAX))


def _class_in(names: str) -> str:
    """The class of `package.Class.package.of.a.type.`: up to the first name with a capital."""
    parts = names.rstrip(".").split(".")
    at = next((at for at, part in enumerate(parts, 1) if part[:1].isupper()), len(parts))
    return ".".join(parts[:at])


def wall_ns(text: str, near_wall_ns: int) -> int | None:
    """The time of `MM-dd HH:mm:ss.SSS`, which has no year and no zone: the last one that is not more than a
    day after `near_wall_ns`, in this machine's zone. None: it is not a time."""
    found = _STAMP.fullmatch(text)
    if found is None:
        return None
    month, day, hour, minute, second, ms = map(int, found.groups())
    year = (_EPOCH + timedelta(microseconds=near_wall_ns // 1_000)).year
    for one in (year + 1, *range(year, year - 9, -1)):  # 29 February is in every eighth year at the latest
        moment = local_ns(one, month, day, hour, minute, second)
        if moment is not None and moment <= near_wall_ns + _A_DAY_NS:
            return moment + ms * 1_000_000
    return None


def is_stamp(text: str) -> bool:
    return _STAMP.fullmatch(text) is not None


def local_ns(*moment: int) -> int | None:
    """Takes year, month, day, hour, minute, second in this machine's zone; None: there is no such time."""
    *minute, second = moment
    minute_ns = _minute_ns(*minute)
    return None if minute_ns is None or second > 59 else minute_ns + second * _S


@lru_cache(CACHED_MAX)
def _minute_ns(*minute: int) -> int | None:
    """A log's moments lie in few minutes, and asking for a zone takes long."""
    try:
        year, month, day, hour, past = minute
        return round(datetime(year, month, day, hour, past).astimezone().timestamp()) * _S
    except (ValueError, OverflowError, OSError):
        return None


_TEXT_MAX = 500
_PROCESSES_MAX = 100
_PLATFORM = (
    *("android.", "androidx.", "com.android.", "dalvik.", "libcore.", "java.", "javax.", "jdk.", "sun."),
    *("kotlin.", "kotlinx.", "org.chromium.", "com.google.android.", "org.json.", "org.xml.", "okhttp3."),
    *("okio.", "retrofit2.", "rx.", "io.reactivex.", "com.squareup.", "com.bumptech.glide."),
    *(
        "com.github.moduth.",
        "com.tencent.matrix.",
        "com.github.anrwatchdog.",
        "org.apache.",
        "com.google.gson.",
    ),
)


class JavaOwnership:
    """Own is what is in the packages of concern; without any, all but Android, Java and common libraries."""

    def __init__(self, concern: Sequence[str] = ()) -> None:
        self._concern = tuple(package.rstrip(".*") for package in concern)
        self._known: dict[CodePlace, StackFrame] = {}
        self._of: dict[str, JavaOwnership] = {}

    def of_process(self, process: str, places: Iterable[CodePlace]) -> JavaOwnership:
        """Takes the process's name for the package of concern, as the original does, where none is set and
        one of these places lies in it."""
        package = process.partition(":")[0]
        if self._concern or "." not in package or not any(_is_in(place.owner, package) for place in places):
            return self
        if package not in self._of:
            if len(self._of) > _PROCESSES_MAX:
                self._of.clear()
            self._of[package] = JavaOwnership((package,))
        return self._of[package]

    def frame(self, place: CodePlace) -> StackFrame:
        """The frame as reports show it: the class without its package, which becomes the file's folder."""
        known = self._known.get(place)
        if known is None:
            if len(self._known) > 200_000:
                self._known.clear()
            known = self._known[place] = self._made(place)
        return known

    def _made(self, place: CodePlace) -> StackFrame:
        package, _, name = place.owner.rpartition(".")
        file = place.file or name.partition("$")[0]
        folder = package.replace(".", "/")
        return StackFrame(
            function=place.method[:_TEXT_MAX],
            qualname=".".join(filter(None, (name, place.method)))[:_TEXT_MAX],
            file="/".join(filter(None, (folder, file)))[:_TEXT_MAX] or "?",
            line=place.line,
            in_app=self._is_own(place.owner),
        )

    def _is_own(self, owner: str) -> bool:
        if self._concern:
            return any(_is_in(owner, one) for one in self._concern)
        return "." in owner and not owner.startswith(_PLATFORM)


def _is_in(owner: str, package: str) -> bool:
    return owner == package or owner.startswith((f"{package}.", f"{package}$"))
