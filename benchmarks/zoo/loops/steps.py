"""Coroutines on loops that know none: each step, from one pause to the next, is a callback of the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator

from zoo.loops import Main


class Pause:
    """Awaited, it ends the step; the next one begins in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __await__(self) -> Generator[float, None, None]:
        yield self._seconds


class Steps:
    """One coroutine, in steps."""

    def __init__(
        self,
        main: Main,
        later: Callable[[float, Callable[[], None]], None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._coroutine = main()
        self._later = later
        self._ended = ended
        self._stopped = False

    def step(self) -> None:
        """The next one. Toolkits print what a callback raises and go on: it is handed to `ended`."""
        if self._stopped:
            return
        try:
            seconds = self._coroutine.send(None)
        except StopIteration:
            self._ended(None)
        except BaseException as error:  # noqa: BLE001 - raised by run()
            self._ended(error)
        else:
            self._later(seconds, self.step)

    def stop(self) -> None:
        """No step any more."""
        self._stopped = True
        self._coroutine.close()


class CallbackHost(ABC):
    """A host whose loop calls functions, now or later."""

    _error: BaseException | None = None
    _steps: tuple[Steps, ...] = ()
    """Kept here: a toolkit may hold a method's object weakly."""

    @abstractmethod
    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """Has the loop call it then, as it calls a program's own callbacks."""

    @abstractmethod
    def loop(self) -> None:
        """Runs the loop until `leave` is called."""

    @abstractmethod
    def leave(self) -> None:
        """Has the loop end."""

    def run(self, main: Main) -> None:
        """See Host."""
        self._begin(Steps(main, self.later, self._end))
        self.loop()
        if self._error is not None:
            raise self._error

    async def pause(self, seconds: float) -> None:
        """See Host."""
        await Pause(seconds)

    async def call(self, program: Main) -> None:
        """See Host."""
        await Pause(0)
        await program()
        await Pause(0)

    def beside(self, main: Main) -> Callable[[], None]:
        """See Host."""
        return self._begin(Steps(main, self.later, self._fail))

    def _begin(self, steps: Steps) -> Callable[[], None]:
        self._steps += (steps,)
        self.later(0, steps.step)
        return steps.stop

    def _end(self, error: BaseException | None) -> None:
        self._error = self._error or error
        self.leave()

    def _fail(self, error: BaseException | None) -> None:
        if error is not None:
            self._end(error)
