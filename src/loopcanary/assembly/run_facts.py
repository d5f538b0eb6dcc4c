"""What a reporter is made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopcanary.assembly import native_module
from loopcanary.model import Config, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """See protocols.WatchedRun."""

    config: Config
    session: Session

    def exit_changer(self) -> Callable[[int], object]:
        return native_module().fail_exit
