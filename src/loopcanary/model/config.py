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
BOOT_HANG_NS = 10 * _S
EXIT_HANG_NS = 5 * _S
LOOK_NS = 5 * _S
"""Between two looks at tasks; the second one knows what has not moved."""
STORE_NAME = ".loopcanary"
"""Of the store's folder, in the folder where a program is started."""
NOTIFY_WAYS = ("bell", "desktop", "webhook")
NOTIFY_KILLED_NS = (1 << 63) - 1
REQUESTS_ONE_OF = 16
"""One of so many requests is timed, as by the engine (LC_ANSWERS_ONE_OF in native/core/answers/answers.h). By
count: by time it would miss requests that come in a crowd, as they do after the loop was blocked."""
FAILED_ON_STALL = 70
"""The exit status by `fail_on_stall`: EX_SOFTWARE of sysexits.h."""

AUTO, NATIVE, PORTABLE = ENGINES = ("auto", "native", "portable")
"""Which engine watches. `auto`: the native one where it works, else the portable one."""
ON, OFF = "on", "off"
"""Of `console`, beside AUTO."""


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
        """A copy with these changes, as by dataclasses.replace."""
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
        raise AttributeError(f"settings cannot be changed: {name}")


@dataclass(frozen=True, kw_only=True)
class Config(_Frozen):
    """Every setting: what it does, what it costs, its default."""

    threshold_ns: int = 100 * _MS
    """A callback or turn that takes longer is a stall. At least 1 ms. A lower one gives more reports, and
    samples more work that ends in time."""
    sample_delay_ns: int | None = None
    """The first sample is taken after this much of a callback or turn. It must be below the threshold, and at
    least 100 us. A lower one covers more of a stall, and samples more callbacks in vain. From a fifth of
    the threshold on the watchdog wakes less often; the first sample is then at 0.35 of the threshold at
    the latest."""
    sample_interval_ns: int = 10 * _MS
    """Time between samples of one stall, at least 100 us. It doubles as a stall grows long, so that memory is
    bounded. The portable engine keeps to about 10 ms beside a busy program."""
    job_threshold_ns: int = 1 * _S
    """A request that a WSGI server handles on a thread of its own is a stall when it takes longer. A job of
    Celery, dramatiq or RQ, or a notebook's cell, is one when it takes ten times as long. A value below
    `threshold` has no effect."""
    store: str | None = None
    """Folder of the store. Programs may share one. Where it cannot be written, stalls are shown and not
    stored, and one line says so. A `.loopcanary` that another user made is used only if you name it."""
    flight_dir: str | None = None
    """Folder in memory for flight files, where the keeper is in another container."""
    name: str | None = None
    """Name of the program in reports."""
    concern: tuple[str, ...] = ()
    """Packages that count as the program's own code, which titles and culprits come from. Other packages are
    then not blamed. Set it if the program is installed as a package, or to look into a library. The
    default is all code outside site-packages and the standard library."""
    only_concern: bool = False
    """Report only stalls with a frame of the program's own code. Stalls that a library causes alone are not
    reported."""
    ignore: tuple[str, ...] = ()
    """Stalls whose culprit is in one of these are not reported: a package (`legacy`), a file glob with a `/`
    or ending in `.py` (`*/migrations/*.py`), or a function (`shop.jobs:rebuild`). It hides new stalls of
    that code, too. `kind:exit-hang` hides all issues of a kind that is not stalls."""
    delete_ignored: bool = True
    """Do not store ignored stalls. Off: they are stored, and not reported."""
    console: str = AUTO
    """`on`: stalls are printed to stderr as they happen, as with `loopcanary run`. `auto`: only notices are
    printed, such as that nothing can be stored. `off`: nothing is printed, as with `loopcanary run
    --quiet`. A child process prints only if its stderr is the program's own, not a pipe that the program
    reads."""
    engine: str = AUTO
    """`native` watches from C, without the GIL, and its evidence survives a kill. `portable` is pure Python:
    it sees a call that holds the GIL only when the call ends. `auto` takes the native engine where it
    works."""
    keeper: bool = True
    """A keeper, one process for all programs of a store, diagnoses, stores and reports stalls. If this is
    off, or no keeper can run, a thread of the program does so, which needs the GIL."""
    follow_children: bool = True
    """Watch child processes, too: forked, spawned or started by subprocess."""
    while_debugging: bool = False
    """Record stalls while a debugger is attached. Off, such stalls are only counted, since a program at a
    breakpoint is not stalled. Debuggers are pdb, pydevd, debugpy and IPython's while the thread is in
    their code, and a tracing process such as gdb."""
    production: bool = False
    """A wrong setting is logged once and its default kept, so that a service starts in spite of a typing
    error. Off, a wrong setting is an error."""
    sd_watchdog: bool = False
    """Under systemd with `WatchdogSec=`, report that the program lives while every loop makes progress. It
    needs `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`, which systemd sets."""
    exit_when_hung_ns: int = 0
    """A loop that has been in one turn for this long ends its process by SIGABRT. At least 1 s; `"0s"`:
    never. Native engine only."""
    signals: tuple[str, ...] = ()
    """If one of these signals ends the program in a stall, the report names its sender. Possible are
    `SIGABRT`, `SIGTERM`, `SIGQUIT`, `SIGALRM`, `SIGUSR1`, `SIGUSR2`, `SIGHUP`, `SIGINT`, `SIGXCPU`, and for
    crashes `SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`; `SIG` may be left out. Native engine only."""
    fail_on_stall: bool = False
    """A program that would end with status 0 ends with 70 if a stall was recorded in its own process. A
    program that ends by `os._exit` or a signal keeps its status. For tests."""
    stalls_per_minute: int = 120
    """Stalls diagnosed and stored each minute; further ones are counted. After a quiet minute all of them may
    come at once. A higher one costs more CPU time and space in a storm of stalls."""
    retention: tuple[int, int] = (30 * 86_400 * _S, 1 << 30)
    """How old stored issues may be, and how large the store: `"30d, 1GiB"`, `"7d"` or `"200MB"`. Beyond it,
    and beyond 100,000 stalls, the oldest are removed. The age is at least 1 s."""
    version: str | None = None
    """Version of the watched program. Reports then name the version in which a stall first occurred."""
    labels: tuple[tuple[str, str], ...] = ()
    """Names with values of your own, such as the region. They are stored, shown and exported with every
    stall."""
    methods: tuple[str, ...] = ()
    """Packages and modules whose calls are traced one by one; `.` is the program's own code, `!` before a
    name leaves it out. Each traced call costs 30 to 100 ns, other code nothing, and each watched thread 8
    MB."""
    methods_ring: int = 8 << 20
    """Memory for the last calls of a thread, 16 bytes a call. It is rounded down to a power of two, 32 KiB to
    32 MiB."""
    slow_method_ns: int = 700 * _MS
    """A longer stall whose calls were traced is reported as a slow method, and so is a longer traced call
    outside of stalls."""
    locks: bool = False
    """Find tasks that wait for each other, and locks of tasks that are not released."""
    windows_ns: int = 0
    """Report a window that takes no input or paints nothing for this long while its loop is healthy. At least
    100 ms; `"0s"`: never."""
    startup: bool = False
    """Record how the program starts, with every import (the 400 longest phases are kept), also in children
    that are not forks."""
    startup_threshold_ns: int = 10 * _S
    """A cold start that takes longer is reported, and a warm one, whose modules were compiled and in memory,
    that takes more than two fifths of it. At least 1 ms. Shorter starts are stored for comparison."""
    log_file: str | None = None
    """Each issue is added to this file as a line of JSON. Processes may share it. It grows without a bound:
    logrotate may move it away at any time."""
    notify: tuple[str, ...] = ()
    """Ways to notify about hangs: `bell`, `desktop`, `webhook`."""
    notify_kinds: tuple[str, ...] = ()
    """Kinds of issues to notify about, such as `stall`, `jank`, `input`, `idle`. An issue that contains a
    stall of an earlier notification is left out."""
    notify_from_ns: int = 1 * _S
    """The shortest wait to notify about: a duration, or `stall` (all), `hang` (1 s), `anr` (5 s), `killed`
    (only stalls during which the process was killed, which are always included). Of jank the longest
    frame counts."""
    notify_every_ns: int = 60 * _S
    """Time between two notifications of one bug, at least 1 s. The next notification says how many stalls
    came in between."""
    notify_per_minute: int = 6
    """Notifications of all bugs together in any minute. Further ones wait, and are counted."""
    webhook_file: str | None = None
    """File with the webhook's address, if `LOOPCANARY_WEBHOOK_URL` is not set. The address is a secret: only
    the file's owner should be able to read it."""

    @property
    def first_sample_ns(self) -> int:
        """The sample delay: `sample_delay_ns`, or a fifth of the threshold."""
        return self.threshold_ns // 5 if self.sample_delay_ns is None else self.sample_delay_ns

    @property
    def warm_start_ns(self) -> int:
        """The longest warm start that is not an issue."""
        return self.startup_threshold_ns * 2 // 5

    @property
    def notes_crashes(self) -> bool:
        """Whether `signals` contains a signal of crashes, such as SIGSEGV."""
        return not frozenset(FAULTS).isdisjoint(self.signals)
