"""What the context variable of scenes holds: a name; of a request `[name, life]`, which the tasks that it
started share, and can see the end of."""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from typing import Any


def scene_name(held: Any) -> str | None:
    """None also of a request that is over: its life is None, or a weak reference to a task that is gone."""
    if type(held) is not list:
        name: str | None = held
        return name
    name, life = held
    return name if life is True or (life is not None and life() is not None) else None
