"""How long a test may stall a loop, and what may stall it all the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause
from loopcanary.model.units import parse_duration_ns

if TYPE_CHECKING:
    import pytest

    from loopcanary.model import Stall


@dataclass(frozen=True, slots=True)
class Limit:
    """`max_ns`: None: no stall is too long."""

    max_ns: int | None
    allow: tuple[str, ...] = ()
    strict: bool | None = None
    """Whether blocking calls raise; None: as the option says."""

    def broken_by(self, stalls: Iterable[Stall], known: frozenset[str]) -> list[Stall]:
        """The stalls that are too long, longest first. `known`: fingerprints of the baseline."""
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
    """Not of the host (no core, a stopped process), nor of loopcanary's own work on an earlier stall."""
    return stall.cause is not Cause.HOST and not (stall.holder is not None and stall.holder.is_ours)


def names_of(stall: Stall) -> list[str]:
    """What `allow` is compared with: cause, function, call, and file of the line to change."""
    names = [stall.cause.value, stall.title]
    if stall.blamed is not None:
        names += [stall.blamed.qualname, stall.blamed.file]
    if stall.blocker is not None:
        names += [name for name in (stall.blocker.function, stall.blocker.call) if name]
        names += [stall.blocker.call.partition("(")[0]] if stall.blocker.call else []
    return names


def duration_ns(text: object, place: str) -> int:
    """ValueError that names the place, where it is no duration."""
    try:
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no text such as '50ms'")  # noqa: TRY004, TRY301 - one kind for callers
        return parse_duration_ns(text)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def limit_of(item: pytest.Item, default_ns: int | None) -> Limit:
    """That of a test: of its closest marker, else the option's. ValueError for a marker that is wrong."""
    marker = item.get_closest_marker("loopcanary")
    if marker is None:
        return Limit(default_ns)
    return _marked(marker.args, marker.kwargs, default_ns, item.nodeid)


def _marked(args: Sequence[Any], options: Mapping[str, Any], default_ns: int | None, place: str) -> Limit:
    unknown = set(options) - {"max_stall", "allow", "strict"}
    if args or unknown:
        words = ", ".join(sorted(unknown)) or "values without a name"
        raise ValueError(f"{place}: the marker loopcanary takes max_stall, allow and strict, not {words}")
    allow = options.get("allow", ())
    if isinstance(allow, str) or not all(isinstance(one, str) for one in allow):
        raise ValueError(f'{place}: allow is a list of texts, such as ["json.loads"]')
    strict = options.get("strict")
    if strict not in (None, True, False):
        raise ValueError(f"{place}: strict is True or False, not {strict!r}")
    max_stall = options.get("max_stall")
    max_ns = default_ns if max_stall is None else duration_ns(max_stall, f"{place}: max_stall")
    return Limit(max_ns, tuple(allow), strict)
