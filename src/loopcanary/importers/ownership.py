"""Whose code a Java frame is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopcanary.model import StackFrame
from loopcanary.protocols.imports import CodePlace

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
        """Without packages of concern, the original takes the process's name for one. Here only where it is
        the package of one of these places."""
        package = process.partition(":")[0]
        if self._concern or "." not in package or not any(_is_in(place.owner, package) for place in places):
            return self
        if package not in self._of:
            if len(self._of) > _PROCESSES_MAX:
                self._of.clear()
            self._of[package] = JavaOwnership((package,))
        return self._of[package]

    def frame(self, place: CodePlace) -> StackFrame:
        """As reports show it: of the class the name without its package, which is the file's folder."""
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
