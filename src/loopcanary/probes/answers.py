"""How long servers' answers take: seen where the program's sockets ask the system to receive and send
(native/probes/answers/hook.c), whatever server, protocol or stream of Python's is above them.
"""

from __future__ import annotations

import sys

from loopcanary.probes import ImportWatch

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopcanary._native import Native
    from loopcanary.model import InputFigures

KIND = "requests"
_WITHOUT_LOOP = "(threads)"
"""The common name of threads without a loop, such as those of WSGI servers."""


class AnswersProbe:
    """Times the answers to HTTP/1 requests on TCP sockets, of Python's and of uvloop's, in clear. Linux."""

    kind = "answers"

    def __init__(self, native: Native, contain: Callable[[Callable[[], None]], object]) -> None:
        """`contain` calls a function, and nothing that it raises gets out."""
        self._native = native
        self._watches = [
            ImportWatch("_socket", lambda: contain(self._hook_sockets)),
            ImportWatch("uvloop.loop", lambda: contain(self._hook_uvloop)),
        ]
        self._hooked: list[int | str] = []

    def install(self) -> None:
        """Hooks what is imported, the others when they are. Idempotent."""
        if not self._hooked:
            for watch in self._watches:
                watch.cancel()
                watch.start()

    def uninstall(self) -> None:
        """Takes back every hook that is still ours. What was timed can still be read."""
        for watch in self._watches:
            watch.cancel()
        hooked, self._hooked = self._hooked, []
        for where in hooked:
            self._native.unhook_answers(where)

    def _hook_sockets(self) -> None:
        sockets = sys.modules["_socket"]
        self._hook(self._native.c_code(sockets.socket.recv))

    def _hook_uvloop(self) -> None:
        file = getattr(sys.modules["uvloop.loop"], "__file__", None)
        if file:
            self._hook(file)

    def _hook(self, where: int | str) -> None:
        if where and self._native.hook_answers(where):
            self._hooked.append(where)


def figures(native: Native) -> Sequence[InputFigures]:
    """What was timed so far; one answer more or less. Any thread."""
    rows = native.answers()
    if not rows:
        return ()
    from loopcanary.model.figures.histogram import quantile_ns
    from loopcanary.model.figures.lags import REQUESTS_ONE_OF, InputFigures

    return [
        InputFigures(
            thread=thread or _WITHOUT_LOOP,
            loop=KIND,
            events=events,
            p50_ns=min(quantile_ns(counts, 0.5), worst_ns),
            p98_ns=min(quantile_ns(counts, 0.98), worst_ns),
            worst_ns=worst_ns,
            worst=worst or None,
            queued_ns=waited_ns,
            lag_ns=lag_ns,
            one_of=REQUESTS_ONE_OF,
        )
        for thread, events, lag_ns, waited_ns, worst_ns, worst, counts in rows
    ]
