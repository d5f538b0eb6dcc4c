"""The settings of one engine, as values. How they are found: loopcanary.config."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_MS = 1_000_000
_S = 1_000_000_000


STORE_NAME = ".loopcanary"
"""Of the store's folder, in the folder where a program is started."""
NOTIFY_WAYS = ("bell", "desktop", "webhook")
NOTIFY_KILLED_NS = (1 << 63) - 1


class EngineChoice(Enum):
    """Which engine watches. `auto`: the native one where it works, else the portable one."""

    AUTO = "auto"
    NATIVE = "native"
    PORTABLE = "portable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting: what it does, what it costs, its default."""

    threshold_ns: int = 100 * _MS
    """A callback or turn longer than this is a stall. Lower: more reports, and more samples taken of
    work that ends in time."""
    sample_delay_ns: int | None = None
    """First sample after this much of a callback or turn; None: a fifth of the threshold. Lower:
    more of a stall is covered, and more callbacks that end in time are sampled for nothing."""
    sample_interval_ns: int = 10 * _MS
    """Between samples of one stall; doubled as a stall grows long, so that memory is bounded."""
    request_threshold_ns: int = 1 * _S
    """A request that a WSGI server handles on a thread is a stall when it takes longer than this."""
    task_threshold_ns: int = 10 * _S
    """A job of a task queue is a stall when it takes longer than this."""
    store: Path | None = None
    """Folder of the store; None: `.loopcanary` in the current folder, or the user's state folder where
    that cannot be written."""
    name: str | None = None
    """Name of the program in reports; None: its script or module."""
    concern: tuple[str, ...] = ()
    """Packages that count as the program's own code. Empty: all code outside site-packages and the
    standard library."""
    only_concern: bool = False
    """Report only stalls with a frame of the program's own code."""
    ignore: tuple[str, ...] = ()
    """Stalls whose culprit is in one of these are not reported: a package, a file glob (with a `/`
    or ending in `.py`), or `package.module:function`."""
    keep_ignored: bool = False
    """Store ignored stalls all the same, without reporting them."""
    quiet: bool = False
    """No console output while the program runs."""
    console: bool = False
    """Print stalls to stderr as they happen (`loopcanary run` switches this on)."""
    engine: EngineChoice = EngineChoice.AUTO
    follow_children: bool = True
    """Watch child processes too (fork, spawn, subprocess)."""
    while_debugging: bool = False
    """Record stalls while a debugger is attached."""
    production: bool = False
    """A bad setting is logged and its default kept, where otherwise it is an error."""
    fail_on_stall: bool = False
    """A program that would end with status 0 ends with 70 where a stall was recorded."""
    stalls_per_minute: int = 120
    """Stalls diagnosed and stored each minute; those beyond are counted, not stored."""
    retention_age_ns: int = 30 * 86_400 * _S
    """Stored stalls older than this are removed."""
    retention_stalls: int = 100_000
    retention_bytes: int = 1 << 30
    version: str | None = None
    """Version of the watched program, for reports."""
    qualifier: str | None = None
    """Build or deployment label of the watched program, such as `staging`."""
    user: str | None = None
    """User id, only if you give one."""
    network: str | None = None
    """Kind of network, only if you give one."""
    window_titles: bool = True
    """Stalls and frames carry their window's title as scene, where the program sets none."""
    methods: tuple[str, ...] = ()
    """Packages for the methods tracer."""
    log_file: Path | None = None
    """File to which each issue is added as a line of JSON."""
    log_file_bytes: int = 10 << 20
    """Beyond this size the log file is renamed, and a new one begun."""
    notify: tuple[str, ...] = ()
    """Ways to notify about stalls, beside the console: names of NOTIFY_WAYS."""
    notify_kinds: tuple[str, ...] = ()
    """Kinds of issues to notify about: names of IssueKind. Empty: all."""
    notify_from_ns: int = 1 * _S
    """The shortest wait to notify about; NOTIFY_KILLED_NS: only stalls that ended with their process."""
    notify_every_ns: int = 60 * _S
    """Between two notifications of one bug."""
    notify_per_minute: int = 6
    """Notifications of all bugs together in any minute."""
    webhook_file: Path | None = None
    """File with the webhook's address, which is a secret; LOOPCANARY_WEBHOOK_URL goes first."""

    @property
    def first_sample_ns(self) -> int:
        """The sample delay: `sample_delay_ns`, or a fifth of the threshold."""
        return self.threshold_ns // 5 if self.sample_delay_ns is None else self.sample_delay_ns
