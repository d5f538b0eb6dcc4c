"""What a reporter is made with."""

from __future__ import annotations

from collections.abc import Callable

from loopcanary.assembly import native_module
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Config, Session
from loopcanary.protocols.plugins import TextScreen
from loopcanary.whose_stderr import is_a_child, is_by_hand, may_speak


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """See protocols.WatchedRun."""

    config: Config
    session: Session

    folder = None

    @property
    def process(self) -> str:
        return f"{self.session.name} (pid {self.session.pid})" if is_a_child() else ""

    @property
    def is_by_hand(self) -> bool:
        return is_by_hand()

    def screen(self) -> TextScreen | None:
        if not may_speak():
            return None
        from loopcanary.reporters.terminal import Terminal

        return Terminal()

    def exit_changer(self) -> Callable[[int], object]:
        return native_module().fail_exit
