"""How long to wait before another try: longer each time. Pure: time is an argument."""

from __future__ import annotations


class Backoff:
    """`first_ns` after the first failure, then twice as long each time, `most_ns` at most."""

    def __init__(self, first_ns: int, most_ns: int) -> None:
        self._first_ns = first_ns
        self._most_ns = most_ns
        self.failures = 0
        self.until_ns: int | None = None
        """When to try again; None: nothing failed."""

    def fail(self, now_ns: int) -> None:
        wait_ns = min(self._first_ns << min(self.failures, 32), self._most_ns)
        self.failures += 1
        self.until_ns = now_ns + wait_ns

    def succeed(self) -> None:
        self.failures, self.until_ns = 0, None

    def holds(self, now_ns: int) -> bool:
        """Whether it is too early for another try."""
        return self.until_ns is not None and now_ns < self.until_ns
