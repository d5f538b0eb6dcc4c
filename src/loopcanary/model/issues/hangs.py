"""Programs that do not start, or do not end, though no loop stalls."""

from __future__ import annotations

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.stall import ThreadView


@dataclass(frozen=True, slots=True, kw_only=True)
class BootHang(ReportedFacts):
    """The main thread has been in one call of an import, before its first loop, without running."""

    kind = IssueKind.BOOT_HANG
    waits_for: str = ""
    """`socket to 10.0.0.5:5432`; empty: it is not known."""

    @property
    def searched(self) -> tuple[str, ...]:
        return (self.waits_for,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitHang(ReportedFacts):
    """The main thread's program is over, and waits for other threads; no thread of the process runs."""

    kind = IssueKind.EXIT_HANG
    where: str = ""
    """What the main thread is in: `asyncio.run`, `threading._shutdown`, an exit function."""
    threads: tuple[ThreadView, ...] = ()
    """It waits for one of these; empty: for what else, or for which one, is not known."""

    @property
    def searched(self) -> tuple[str, ...]:
        return (self.where, *(view.name for view in self.threads))
