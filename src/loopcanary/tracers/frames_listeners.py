"""Listeners for each frame: called at once on the surface's thread, or a little later on one of ours."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from loopcanary.model.figures.frames import ShownFrame

_WAITING_MAX = 1_024
"""Frames that wait for listeners on the thread: four seconds of 240 Hz. More are dropped, oldest first."""


class Listener(Protocol):
    """As registry.FrameListener."""

    @property
    def hear(self) -> Callable[[ShownFrame], object]:
        """What is called."""

    @property
    def on_thread(self) -> bool:
        """Not on the surface's thread."""


class FrameListeners:
    """Hands frames on. One that raises is switched off, alone."""

    def __init__(self, listeners: Sequence[Listener], failed: Callable[[str, Exception], object]) -> None:
        """`listeners`: the live list; `failed` gets the name of each that is switched off."""
        self.registered = listeners
        self._failed = failed
        self._off: set[int] = set()
        self._waiting: deque[ShownFrame] = deque(maxlen=_WAITING_MAX)
        self._bell: threading.Semaphore | None = None
        self._is_over = False

    def tell(self, frame: ShownFrame) -> None:
        """One frame. The surface's thread; nothing is raised."""
        later = False
        for listener in list(self.registered):
            if listener.on_thread:
                later = True
            else:
                self._call(listener, frame)
        if later:
            self._waiting.append(frame)
            self._ring()

    def end(self) -> None:
        """The thread ends when it has handed on what waits."""
        bell, self._bell = self._bell, None
        self._is_over = True
        if bell is not None:
            bell.release()

    def renew(self) -> None:
        """The engine begins anew, or a child has been forked: its parent's thread is not there."""
        self._bell = None
        self._is_over = False
        self._waiting.clear()

    def _ring(self) -> None:
        if self._bell is None:
            if self._is_over:
                return
            bell = self._bell = threading.Semaphore(0)
            try:
                # A thread of threading's own: the program has asked for one by registering the listener.
                threading.Thread(
                    target=self._run, args=(bell,), name="loopcanary-frames", daemon=True
                ).start()
            except RuntimeError as error:
                self._is_over = True
                self._failed("frame listeners on a thread", error)
                return
        self._bell.release()

    def _run(self, bell: threading.Semaphore) -> None:
        while True:
            bell.acquire()
            is_over = self._bell is not bell
            while True:
                try:
                    frame = self._waiting.popleft()
                except IndexError:
                    break
                for listener in list(self.registered):
                    if listener.on_thread:
                        self._call(listener, frame)
            if is_over:
                return

    def _call(self, listener: Listener, frame: ShownFrame) -> None:
        if id(listener) in self._off:
            return
        try:
            listener.hear(frame)
        except Exception as error:  # noqa: BLE001 - the program's own code, called in the middle of ours
            self._off.add(id(listener))
            name = getattr(listener.hear, "__qualname__", type(listener.hear).__qualname__)
            self._failed(f"frame listener {name}", error)
