"""gevent, with nothing patched."""

from __future__ import annotations

from collections.abc import Callable

import gevent

from zoo.loops import Main


class GeventHost:
    """Programs are greenlets. A pause is a switch of greenlets, so no coroutine ever gives way."""

    def run(self, main: Main) -> None:
        """See Host."""
        _to_its_end(main)

    async def pause(self, seconds: float) -> None:
        """See Host."""
        gevent.sleep(seconds)

    async def call(self, program: Main) -> None:
        """See Host."""
        gevent.spawn(_to_its_end, program).get()

    def beside(self, main: Main) -> Callable[[], None]:
        """See Host."""
        return gevent.spawn(_to_its_end, main).kill  # type: ignore[no-any-return]


def _to_its_end(main: Main) -> None:
    try:
        main().send(None)
    except StopIteration:
        return
    raise RuntimeError("a program for gevent awaits nothing but pauses")


HOST = GeventHost()
