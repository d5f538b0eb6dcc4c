"""The door by which Python code of ours replaces what belongs to the program, its libraries or Python, and by
which all of it is written down (native/core/patches; of the portable engine, in memory alone)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType
    from typing import Any

ON, OFF, UNDER = "+", "-", "!"
"""What a line begins with: in place, taken back, another tool has patched over it."""
MAGIC = b"LCPATCH1\n"
_early: dict[str, str] = {}
"""States of what was noted without the extension, or before it was loaded."""


def note(state: str, what: str) -> None:
    """Notes what is replaced, or what has become of it: a kind (attribute, hook), a blank, and its name."""
    native: Any = sys.modules.get("loopcanary._native")
    if native is None or (state != ON and _early.get(what) == ON):
        _early[what] = state
    else:
        native.note_patch(state + what)


def noted() -> bytes:
    """All lines, as in the file beside the flight file."""
    native: Any = sys.modules.get("loopcanary._native")
    early = "".join(f"{state}{what}\n" for what, state in _early.items())
    return MAGIC + early.encode(errors="replace") + (native.patches() if native else b"").removeprefix(MAGIC)


def left() -> tuple[str, ...]:
    """What was noted and is not taken back."""
    lines = noted().decode(errors="replace").split("\n")[1:-1]
    under = " (another tool has patched over it)"
    return (*{line[1:] + (under if line[0] == UNDER else ""): None for line in lines if line[0] != OFF},)


_all: list[list[Any]] = []
"""The attributes that all parts have replaced: owner, name, original, ours, and what it is noted as."""


class Patches:
    """What one part has replaced, newest last. Under the GIL; callers patch and take back one at a time."""

    def __init__(self) -> None:
        self._laid: list[list[Any]] = []
        self._hooks: dict[str, Callable[[], object] | None] = {}

    def put(self, owner: Any, name: str, make: Callable[[Any], object]) -> bool:
        """Puts `make(original)` in the original's place, until all are taken back.

        Args:
            owner: A class or module; nothing happens where it has no such attribute of its own, or ours.
            name: Of the attribute.
            make: Called at once with the original; what it gives takes its place.
        """
        original = vars(owner).get(name)
        if original is None or any(original is ours for _, _, _, ours, _ in self._laid):
            return False
        self.lay(owner, name, make(original))
        return True

    def lay(self, owner: Any, name: str, ours: object) -> None:
        """The same, also where the owner has inherited the attribute, or its class makes another thing of
        `ours`."""
        original = vars(owner).get(name)
        where = f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else owner.__name__
        setattr(owner, name, ours)
        self._laid.append([owner, name, original, vars(owner)[name], f"attribute {where}.{name}"])
        note(ON, self._laid[-1][4])
        _all.append(self._laid[-1])

    def wrap(self, owner: Any, name: str, make: Callable[[FunctionType], Any]) -> bool:
        """As `put`, of a plain function, of which the replacement gets the attributes."""
        if not isinstance(vars(owner).get(name), type(note)):
            return False
        from functools import update_wrapper  # most programs have nothing that needs it

        def alike(original: FunctionType) -> Any:
            made = make(original)
            return update_wrapper(made, original) if isinstance(made, type(note)) else made

        return self.put(owner, name, alike)

    def hook(self, what: str, undo: Callable[[], object] | None = None) -> None:
        """Notes what the caller has hooked, and what undoes it; None: the caller does. Idempotent."""
        if what not in self._hooks:
            self._hooks[what] = undo
            note(ON, f"hook {what}")

    def take_back(self) -> bool:
        """Puts every original back, except where another tool has patched over ours; whether there were any,
        and none of those."""
        is_whole = bool(self._laid)
        while self._laid:
            owner, name, original, ours, what = taken = self._laid.pop()
            _all[:] = [one for one in _all if one is not taken]
            now = vars(owner).get(name)
            if now is ours and original is None:
                delattr(owner, name)
            elif now is ours:
                setattr(owner, name, original)
            others = [one for one in _all if one[0] is owner and one[1] == name and one[2] is ours]
            for other in others:  # that part's is over this one, and gives back what was before both
                other[2] = original
            note(OFF if others or now is ours or now is original else UNDER, what)
            is_whole &= now is ours
        while self._hooks:
            what, undo = self._hooks.popitem()
            if undo is not None:
                undo()
            note(OFF, f"hook {what}")
        return is_whole
