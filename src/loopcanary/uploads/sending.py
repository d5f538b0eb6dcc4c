"""One upload: what was on its way first, then bundle after bundle until all is acknowledged."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import IO

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, StallState
from loopcanary.uploads.client import Post
from loopcanary.uploads.errors import UploadError
from loopcanary.uploads.journal import Item, Journal, Parcel, item_of
from loopcanary.uploads.retrying import (
    ATTEMPTS,
    PATIENCE_S,
    Answer,
    RetryVerdict,
    verdict,
    wait_s,
    words_of,
)

_DELETE_BATCH = 500
SLEEP: Callable[[float], None] = time.sleep


@dataclass(slots=True, kw_only=True)
class Progress:
    """What an upload has done so far."""

    bundles: int = 0
    sent: int = 0
    """Issues."""
    before: int = 0
    """Issues that the receiver had already."""
    deleted: int = 0


@dataclass(slots=True, kw_only=True)
class Upload:
    """From one store to one receiver. Raises UploadError; can be begun anew whenever it ended."""

    journal: Journal
    receiver: str
    """As the journal knows it."""
    post: Post
    delete: Callable[[Sequence[Item]], int] | None = None
    """Deletes what has been acknowledged; None: it stays."""
    say: Callable[[str], None] = lambda _: None
    """Takes a line for people."""
    progress: Progress = field(default_factory=Progress)
    _finished: set[Item] = field(default_factory=set)
    """Sent by this upload, and chosen by one before it."""
    _known: list[Item] = field(default_factory=list)

    def finish_pending(self) -> None:
        """Sends what an earlier upload had on its way when it ended."""
        parcel = self.journal.pending(self.receiver)
        if parcel is not None:
            self._finished.update(parcel.items)
            self._deliver(parcel)

    def send(
        self, issues: Iterator[Issue], write: Callable[[IO[bytes], Iterator[Issue]], Iterable[Item]]
    ) -> None:
        """Sends what the receiver has not. `write` puts as many as a bundle shall have into a file."""
        new = filter(self._is_new, issues)
        while (parcel := self.journal.pack(self.receiver, lambda out: write(out, new))) is not None:
            self._deliver(parcel)
        self._delete_known()

    def _is_new(self, issue: Issue) -> bool:
        if issue.state is StallState.ONGOING:
            return False  # it is sent when it is over
        item = item_of(issue.id, issue.state)
        if self.journal.state_acknowledged(self.receiver, issue.id) != item[1]:
            return True
        self.progress.before += item not in self._finished
        self._known.append(item)
        if len(self._known) >= _DELETE_BATCH:
            self._delete_known()
        return False

    def _delete_known(self) -> None:
        """Of an earlier upload, which did not, or did not come to it."""
        known, self._known = self._known, []
        self._delete(known)

    def _deliver(self, parcel: Parcel) -> None:
        for attempt in range(ATTEMPTS):
            answer = self.post(parcel.path, parcel.digest)
            match verdict(answer):
                case RetryVerdict.TAKEN:
                    self._taken(parcel)
                    return
                case RetryVerdict.REFUSED:
                    self.journal.refuse(self.receiver, parcel)
                    raise UploadError(f"the upload was refused: {words_of(answer)}")
                case RetryVerdict.AGAIN if attempt + 1 < ATTEMPTS:
                    self._wait(attempt, answer)
                case RetryVerdict.AGAIN:
                    raise UploadError(
                        f"given up after {ATTEMPTS} attempts: {words_of(answer)}; the same command goes on "
                        "from here"
                    )

    def _wait(self, attempt: int, answer: Answer) -> None:
        seconds = wait_s(attempt, answer, now_s=time.time(), chance=random.random)
        if seconds > PATIENCE_S:
            raise UploadError(
                f"{words_of(answer)}, and asks to come back in {seconds / 60:,.0f} minutes; the same command "
                "goes on from here then"
            )
        self.say(f"{words_of(answer)}; again in {seconds:.1f} s")
        SLEEP(seconds)

    def _taken(self, parcel: Parcel) -> None:
        self.journal.acknowledge(self.receiver, parcel)
        self.progress.bundles += 1
        self.progress.sent += len(parcel.items)
        self._delete(parcel.items)

    def _delete(self, items: Sequence[Item]) -> None:
        if self.delete is not None and items:
            self.progress.deleted += self.delete(items)
