"""trio."""

from __future__ import annotations

from collections.abc import Callable

import trio

from zoo.loops import Main


class TrioHost:
    """Programs are tasks."""

    _beside: trio.Nursery

    def run(self, main: Main) -> None:
        """See Host."""

        async def whole() -> None:
            async with trio.open_nursery() as self._beside:
                await main()

        trio.run(whole)

    async def pause(self, seconds: float) -> None:
        """See Host."""
        await trio.sleep(seconds)

    async def call(self, program: Main) -> None:
        """See Host."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(program, name="zoo")

    def beside(self, main: Main) -> Callable[[], None]:
        """See Host."""
        scope = trio.CancelScope()

        async def scoped() -> None:
            with scope:
                await main()

        self._beside.start_soon(scoped)
        return scope.cancel


HOST = TrioHost()
