"""Errors of reading: what was expected, and the path of the field, which is put together on the way up."""

from __future__ import annotations


class WireError(ValueError):
    """A document that is not what the contract says; the message names the field."""


class Misfit(Exception):  # noqa: N818 - it never leaves this package; WireError does
    """A value that its field cannot hold. Each level that it passes adds its step to the path."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self._problem = problem
        self._steps: list[str] = []

    def below(self, step: str) -> Misfit:
        """The same, one level further out; `step`: `.name` or `[index]`."""
        self._steps.append(step)
        return self

    def words(self, root: str) -> str:
        """`stall.stacks[0].weight_ms: a number is wanted, not str`."""
        return f"{root}{''.join(reversed(self._steps))}: {self._problem}"


class nothing:  # noqa: N801 - its name is read by people: "text is wanted, not nothing"
    """The type of MISSING."""


MISSING = nothing()
"""What stands for a field that a document does not have."""


def wanted(what: str, value: object) -> Misfit:
    """`text is wanted, not int`."""
    return Misfit(f"{what} is wanted, not {type(value).__name__}")


class UnknownKindError(WireError):
    """An issue of a kind that nothing here can read."""

    def __init__(self, kind: str, reason: str) -> None:
        """`reason`: what is wrong with its plugin."""
        super().__init__(f"issue.kind: {kind!r} cannot be read: {reason}")
        self.reason = reason
