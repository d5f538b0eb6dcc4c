"""asyncio's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from zoo.loops import Main


class AsyncioHost:
    """Programs are tasks. `factory` makes the loop; asyncio's own if there is none."""

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self.factory = factory

    def run(self, main: Main) -> None:
        """See Host."""
        with asyncio.Runner(loop_factory=self.factory) as runner:
            runner.run(main())

    async def pause(self, seconds: float) -> None:
        """See Host."""
        await asyncio.sleep(seconds)

    async def call(self, program: Main) -> None:
        """See Host."""
        await asyncio.create_task(program(), name="zoo")

    def beside(self, main: Main) -> Callable[[], None]:
        """See Host."""
        task = asyncio.create_task(main())
        return lambda: (task.cancel(), None)[1]


HOST = AsyncioHost()
