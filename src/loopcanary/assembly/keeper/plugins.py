"""Third parties' code in a keeper, which has other programs to serve: each call has two seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from loopcanary.engine.apart import Apart, ApartReporter
from loopcanary.protocols.plugins import Interceptor
from loopcanary.registry import REGISTRY


class Plugins:
    """The plugins of one store's keeper. The keeper's thread only."""

    def __init__(self, complain: Callable[[str], object]) -> None:
        """`complain`: gets a line of what is wrong."""
        self._apart = Apart(None, complain)
        self._hang: set[str] = set()

    def call(self, part: str, function: Callable[..., Any], *args: Any) -> Any:
        """What it returns, and raises. TimeoutError: it is not back, or was not for another program."""
        if part in self._hang:
            raise TimeoutError("it did not return before")
        try:
            return self._apart.call(function, *args)
        except TimeoutError:
            self._hang.add(part)
            raise

    def interceptor(self, interceptor: Interceptor) -> Interceptor:
        """Each of its calls is bounded."""
        name = getattr(interceptor, "__qualname__", type(interceptor).__qualname__)
        bounded = partial(self.call, f"interceptor {name}", interceptor)

        def intercept(issue: Any) -> Any:
            return bounded(issue)

        intercept.__qualname__ = name
        return intercept

    def reporter(self, reporter: Any) -> Any:
        """Each of its calls is bounded."""
        return ApartReporter(reporter, partial(self.call, f"reporter {reporter.name}"))


def bound_imports(complain: Callable[[str], object]) -> None:
    """Makes the registry report once each part that it cannot load, and wait for none. `complain`: gets a
    line."""
    apart, said = Apart(None, complain), set[str]()

    def failed(part: str, error: Exception) -> None:
        if part not in said:
            said.add(part)
            complain(f"{part} failed and is switched off: {type(error).__name__}: {error}")

    REGISTRY.imports, REGISTRY.failed = lambda _, imports: apart.bounded(imports), failed
