"""The settings of one engine, as values. How they are found: loopcanary.config."""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import Any, Self
else:

    def dataclass(**_: object) -> object:
        """To type checkers it is one; what the real one loads and makes takes 8 ms of every watched start."""
        return lambda kind: kind


_MS = 1_000_000
_S = 1_000_000_000


HANG_NS = 1 * _S
ANR_NS = 5 * _S
STORE_NAME = ".loopcanary"
"""Of the store's folder, in the folder where a program is started."""
NOTIFY_WAYS = ("bell", "desktop", "webhook")
NOTIFY_KILLED_NS = (1 << 63) - 1
FAILED_ON_STALL = 70
"""The exit status by `fail_on_stall`: EX_SOFTWARE of sysexits.h."""

AUTO, NATIVE, PORTABLE = ENGINES = ("auto", "native", "portable")
"""Which engine watches. `auto`: the native one where it works, else the portable one."""


FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")
SIGNALS = (
    *("SIGABRT", "SIGTERM", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGXCPU"),
    *FAULTS,
)
"""Those with which supervisors, schedulers and people end programs, and faults of the program itself
(native/core/signals/disposition.h)."""


class _Frozen:
    """What a frozen dataclass is to those who use it. Defaults are the class's own."""

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.__annotations__.keys()
        if unknown:
            raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
        self.__dict__.update(values)

    def replaced(self, **changes: Any) -> Self:
        """As dataclasses.replace."""
        return type(self)(**{**self.__dict__, **changes})

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__annotations__])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values() == self._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self.__dict__)})"
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings do not change: {name}")


@dataclass(frozen=True, kw_only=True)
class Config(_Frozen):
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
    store: str | None = None
    """Folder of the store; None: `.loopcanary` in the current folder, or the user's state folder where
    that cannot be written."""
    flight_dir: str | None = None
    """Folder in memory for flight files; None: /dev/shm. For containers with a keeper in another one: a
    memory-backed volume that both have."""
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
    engine: str = AUTO
    """One of ENGINES."""
    keeper: bool = True
    """A process beside the program, one for all of a store, judges, stores and reports. Off, or where there
    can be none: a thread of the program does, which needs the GIL."""
    follow_children: bool = True
    """Watch child processes too (fork, spawn, subprocess)."""
    while_debugging: bool = False
    """Record stalls while a debugger is attached."""
    production: bool = False
    """A bad setting is logged and its default kept, where otherwise it is an error."""
    sd_watchdog: bool = False
    """Under systemd with `WatchdogSec=`: say that the program lives, while every loop makes progress."""
    exit_when_hung_ns: int = 0
    """A loop that is in one turn for this long ends the process by SIGABRT; 0: none does. Native engine."""
    signals: tuple[str, ...] = ()
    """Signals of which is noted who sends them, names of SIGNALS; in a stall all threads are read first.
    Native engine."""
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
    """Packages and modules whose calls are traced, `.` for the program's own code; with `!` before it: not
    these. Costs 30 to 100 ns a call of their functions, nothing elsewhere, and 8 MB a watched thread."""
    methods_ring: int = 8 << 20
    """Memory for the last calls of a thread, 16 bytes a call; rounded down to a power of two, 32 KiB to
    32 MiB."""
    slow_method_ns: int = 700 * _MS
    """A longer stall, or call outside of stalls, whose calls were traced is a slow method."""
    locks: bool = False
    """Look for tasks of asyncio that wait for each other, and for locks of asyncio that are not released."""
    lock_order: bool = False
    """Report when threads acquire the same two locks in both orders: every acquire is noted, which costs."""
    windows_ns: int = 0
    """Report windows that take no input or paint nothing for this long while the loop is healthy; 0: none."""
    startup: bool = False
    """Record how the program starts, with every import; in children that start anew, too."""
    startup_times: bool = True
    """Record of what `loopcanary run` was given when its start was over, without imports."""
    startup_cold_ns: int = 10 * _S
    """A longer cold start (modules compiled, files read from the disk) is an issue."""
    startup_warm_ns: int = 4 * _S
    """A longer warm start is an issue."""
    log_file: str | None = None
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
    webhook_file: str | None = None
    """File with the webhook's address, which is a secret; LOOPCANARY_WEBHOOK_URL goes first."""

    @property
    def first_sample_ns(self) -> int:
        """The sample delay: `sample_delay_ns`, or a fifth of the threshold."""
        return self.threshold_ns // 5 if self.sample_delay_ns is None else self.sample_delay_ns

    @property
    def notes_crashes(self) -> bool:
        """Whether `signals` names one by which a program ends that crashes."""
        return not frozenset(FAULTS).isdisjoint(self.signals)
