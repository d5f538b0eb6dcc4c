"""How long a test may stall a loop, and what may stall it all the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause
from loopcanary.model.units import parse_duration_ns
from loopcanary.protocols.plugins import Look
from loopcanary.reporters.blocks import stall_block
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    import pytest

    from loopcanary.model import Stall

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a test; None: no stall is too long."""

    max_ns: int | None
    allow: tuple[str, ...] = ()

    def broken_by(self, stalls: Iterable[Stall], known: frozenset[str]) -> list[Stall]:
        """The stalls that are too long, longest first, without the known bugs of the baseline."""
        if self.max_ns is None:
            return []
        found = [
            stall
            for stall in stalls
            if stall.duration_ns >= self.max_ns
            and _is_of_the_test(stall)
            and stall.fingerprint not in known
            and not self._allows(stall)
        ]
        return sorted(found, key=lambda stall: -stall.duration_ns)

    def _allows(self, stall: Stall) -> bool:
        names = names_of(stall)
        return any(fnmatchcase(name, pattern) for pattern in self.allow for name in names)


def _is_of_the_test(stall: Stall) -> bool:
    """False if the host (no core, a stopped process) or loopcanary's own work caused it."""
    return stall.cause is not Cause.HOST and not (stall.holder is not None and stall.holder.is_ours)


def names_of(stall: Stall) -> list[str]:
    """The names that `allow` is compared with: cause, function, call, and file of the line to change."""
    names = [stall.cause.value, stall.title]
    if stall.blamed is not None:
        names += [stall.blamed.qualname, stall.blamed.file]
    if stall.blocker is not None:
        names += [name for name in (stall.blocker.function, stall.blocker.call) if name]
        names += [stall.blocker.call.partition("(")[0]] if stall.blocker.call else []
    return names


def told(stalls: Iterable[Stall]) -> str:
    """The first stall as the console shows it, and the number of the others."""
    first, *others = stalls
    words = stall_block(first, Look(width=_WIDTH, folder=str(Path.cwd()))).rstrip("\n")
    return words + (f"\nand {count_of(len(others), 'shorter stall')}" if others else "")


def duration_ns(text: object, place: str) -> int:
    """Nanoseconds. ValueError, which names the place: it is not a duration."""
    try:
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is not a duration such as '50ms'")  # noqa: TRY004, TRY301 - one kind for callers
        return parse_duration_ns(text)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def limit_of(item: pytest.Item, default_ns: int | None) -> Limit:
    """The limit of the closest marker, else that of the option. ValueError: the marker is wrong."""
    marker = item.get_closest_marker("loopcanary")
    if marker is None:
        return Limit(default_ns)
    return _marked(marker.args, marker.kwargs, default_ns, item.nodeid)


def _marked(args: Sequence[Any], options: Mapping[str, Any], default_ns: int | None, place: str) -> Limit:
    unknown = set(options) - {"max_stall", "allow"}
    if args or unknown:
        words = ", ".join(sorted(unknown)) or "values without a name"
        raise ValueError(f"{place}: the marker loopcanary takes max_stall and allow, not {words}")
    allow = options.get("allow", ())
    if isinstance(allow, str) or not all(isinstance(one, str) for one in allow):
        raise ValueError(f'{place}: allow is a list of texts, such as ["json.loads"]')
    max_stall = options.get("max_stall")
    max_ns = default_ns if max_stall is None else duration_ns(max_stall, f"{place}: max_stall")
    return Limit(max_ns, tuple(allow))
