"""Pages of `loopcanary top`: a process seen from outside, a group of a store."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from loopcanary.document.layout import Sheet
from loopcanary.document.parts import Document
from loopcanary.facts import working_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopcanary.top.rows import LaneRow

_DATABASE = "loopcanary.db"
_LATEST = 20


class LivePages:
    """Reads what a page shows when it is asked for. Any thread."""

    def __init__(self) -> None:
        self._folder = working_folder()

    def stack(self, row: LaneRow, width: int) -> Sequence[Text]:
        """The threads of the row's process, the row's own first."""
        return self._dump(row, width, with_tasks=False)

    def tasks(self, row: LaneRow, width: int) -> Sequence[Text]:
        """What the tasks of the row's process wait for."""
        return self._dump(row, width, with_tasks=True)

    def _dump(self, row: LaneRow, width: int, *, with_tasks: bool) -> Sequence[Text]:
        from loopcanary.assembly.dump import look_at
        from loopcanary.model.outside import Unseen
        from loopcanary.report.dump import dump_document
        from loopcanary.report.text import rich_lines

        if not row.state.is_live:
            return [Text(f"Process {row.pid} has ended. Key g shows its last stall.")]
        if not row.is_near:
            return [Text(f"Process {row.pid} runs in another container: run `loopcanary dump` there.")]
        sight = look_at(row.pid, with_tasks=with_tasks)
        if isinstance(sight, Unseen):
            return [Text(sight.why)]
        threads = sorted(sight.threads, key=lambda thread: thread.tid != row.tid)
        document = dump_document(replace(sight, threads=tuple(threads)), everything=False)
        return list(rich_lines(document, self._sheet(width)))

    def group(self, row: LaneRow, width: int) -> Sequence[Text]:
        """The row's last stall from the flight file, and its bug from the store."""
        return list(self._group(row, self._sheet(width)))

    def _sheet(self, width: int) -> Sheet:
        return Sheet(width=min(width, 120), folder=self._folder)

    def _group(self, row: LaneRow, sheet: Sheet) -> Iterator[Text]:
        from loopcanary.report.issue import issue_blocks
        from loopcanary.report.text import rich_lines

        if row.last is None:
            yield Text("No stall so far." if not row.stalls else "Its last stall was not sampled.")
            return
        yield Text("The last stall", "bold")
        yield from rich_lines(Document(issue_blocks(row.last, row.session)), sheet)
        yield from self._stored(row, row.last.fingerprint, sheet)

    def _stored(self, row: LaneRow, fingerprint: str, sheet: Sheet) -> Iterator[Text]:
        from loopcanary.assembly.explanations import delays, why_grouped
        from loopcanary.assembly.store import open_store
        from loopcanary.model.search import STALLS
        from loopcanary.report.documents import document_of
        from loopcanary.report.model import of_bug
        from loopcanary.report.text import rich_lines
        from loopcanary.store import StoreError

        folder = Path(row.store or "")
        if row.store is None or not _is_own_store(folder):
            yield Text(f"\nIts store {row.store or ''} is missing, or belongs to another user.", "dim")
            return
        store = open_store(folder)
        try:
            if fingerprint not in store.reader.like("fingerprint", fingerprint, STALLS, 1):
                yield Text(f"\nNo stall of this bug is in {folder} yet.", "dim")
                return
            report = of_bug(
                store.reader,
                fingerprint,
                limit=_LATEST,
                now_wall_ns=time.time_ns(),
                explain=why_grouped,
                delays=delays,
            )
            if report is not None:
                yield Text()
                yield from rich_lines(document_of(report), sheet)
        except StoreError as error:
            yield Text(f"\n{error}", "yellow")
        finally:
            store.close()


def _is_own_store(folder: Path) -> bool:
    """Whether the store exists and belongs to this user. Its path comes from another process, and opening a
    store may repair it."""
    try:
        return folder.stat().st_uid == os.geteuid() and (folder / _DATABASE).is_file()
    except OSError:
        return False
