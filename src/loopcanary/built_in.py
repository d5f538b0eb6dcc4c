"""The groups of the registry, and what loopcanary registers in them itself: by name the object, or where it
is, `module:object`.

This table imports nothing. Read at the start of every watched interpreter.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LOOPS = "loopcanary.loops"
INTEGRATIONS = "loopcanary.integrations"
TRACERS = "loopcanary.tracers"
KINDS = "loopcanary_tools.kinds"
CAUSES = "loopcanary_tools.causes"
REMEDIES = "loopcanary_tools.remedies"
INTERCEPTORS = "loopcanary_tools.interceptors"
REPORTERS = "loopcanary_tools.reporters"
EXPORTERS = "loopcanary_tools.exporters"
IMPORTERS = "loopcanary_tools.importers"
IN_PROGRAMS = (LOOPS, INTEGRATIONS, TRACERS)
"""Groups of what runs in every watched program. Their names begin otherwise than those of the others: a
program looks for installed packages of these only, so that an exporter beside it costs it nothing."""
IN_TOOLS = (KINDS, CAUSES, REMEDIES, INTERCEPTORS, REPORTERS, EXPORTERS, IMPORTERS)
"""Groups of what runs where stalls are judged, stored and shown: in keepers and commands, and in a program
that judges its stalls itself."""
GROUPS = (*IN_PROGRAMS, *IN_TOOLS)


class LoopKind:
    """Where the probe of a kind of loops is, and which imports bring such a loop."""

    __slots__ = ("awaits", "kind", "portable", "probe")

    def __init__(
        self, kind: str, *, awaits: Sequence[str], probe: str | None, portable: str | None = None
    ) -> None:
        """What is known of a kind.

        Args:
            kind: Its name.
            awaits: Modules; the probe is loaded when the program has imported one of them.
            probe: `module:object`, called as `probe(native, loop_seen, contain)`: the extension; a function
                to be called when a loop begins to run; one that calls a function, so that nothing gets out.
                It makes a protocols.loops.Probe.
            portable: The same for the portable engine, with a protocols.loops.PortableSide in the extension's
                place; None: that engine watches no such loop.
        """
        self.kind = kind
        self.awaits = awaits
        self.probe = probe
        self.portable = portable


class Library:
    """Where the integration of a library is, and which import brings the library."""

    __slots__ = ("awaits", "brings_work", "name", "patch")

    def __init__(self, name: str, awaits: str, patch: str, *, brings_work: bool = False) -> None:
        """What is known of a library.

        Args:
            name: The name of the integration.
            awaits: A module; the integration is loaded when the program has imported it.
            patch: `module:object`, called as `patch(patches, tell)`.
            brings_work: It runs requests or jobs on threads without a loop: the engine starts with it.
        """
        self.name = name
        self.awaits = awaits
        self.patch = patch
        self.brings_work = brings_work


_P = "loopcanary.probes"
_I = "loopcanary.integrations"
_QT = "PySide6.QtCore PyQt6.QtCore PyQt5.QtCore PySide2.QtCore"


def _loop(kind: str, awaits: str, probe: str, portable: str | None = None) -> LoopKind:
    """`awaits`: modules, with blanks between them; `probe`, `portable`: in the folder of the probes."""
    twin = None if portable is None else f"{_P}.{portable}"
    return LoopKind(kind, awaits=awaits.split(), probe=f"{_P}.{probe}", portable=twin)


_LOOPS = (
    _loop(
        "asyncio",
        "asyncio.base_events",
        "asyncio:AsyncioProbe",
        "asyncio.portable:PortableAsyncioProbe",
    ),
    _loop("uvloop", "uvloop.loop", "uvloop:UvloopProbe", "asyncio.portable:PortableUvloopProbe"),
    _loop("pygame", "pygame", "pygame:PygameProbe", "pygame:PygameProbe"),
    _loop("gevent", "gevent.hub", "gevent:GeventProbe"),
    _loop("trio", "trio._core._run", "trio:TrioProbe", "trio.portable:PortableTrioProbe"),
    _loop("qt", _QT, "qt:QtProbe", "qt.portable:PortableQtProbe"),
    _loop("twisted", "twisted.internet.base", "twisted:TwistedProbe", "twisted:TwistedProbe"),
    _loop("tk", "tkinter", "tk.probe:TkProbe", "tk.portable:PortableTkProbe"),
    _loop("glib", "gi.overrides.GLib", "glib:GLibProbe"),
)

_LIBRARIES = (
    Library("starlette", "starlette.routing", f"{_I}.web:patch_starlette"),
    Library("fastapi", "fastapi.routing", f"{_I}.web:patch_fastapi"),
    Library("aiohttp", "aiohttp.web_app", f"{_I}.web:patch_aiohttp"),
    Library("tornado", "tornado.web", f"{_I}.web:patch_tornado"),
    Library("quart", "quart.app", f"{_I}.web:patch_quart"),
    Library("twisted_web", "twisted.web.server", f"{_I}.web:patch_twisted"),
    Library("uvicorn_h11", "uvicorn.protocols.http.h11_impl", f"{_I}.answers:patch_uvicorn"),
    Library("uvicorn_httptools", "uvicorn.protocols.http.httptools_impl", f"{_I}.answers:patch_uvicorn"),
    Library("uvicorn_server", "uvicorn.server", f"{_I}.answers:patch_uvicorn_server"),
    Library("hypercorn", "hypercorn.protocol.h2", f"{_I}.answers:patch_hypercorn"),
    Library("granian", "granian._futures", f"{_I}.answers:patch_granian"),
    Library("flask", "flask.app", f"{_I}.web:patch_flask", brings_work=True),
    Library("django_wsgi", "django.core.handlers.wsgi", f"{_I}.web:patch_django_wsgi", brings_work=True),
    Library("django_routes", "django.core.handlers.base", f"{_I}.web:patch_django_routes"),
    Library("wsgiref", "wsgiref.handlers", f"{_I}.wsgi_servers:patch_wsgiref", brings_work=True),
    Library("werkzeug", "werkzeug.serving", f"{_I}.wsgi_servers:patch_servers", brings_work=True),
    Library("gunicorn", "gunicorn.workers.base", f"{_I}.wsgi_servers:patch_gunicorn", brings_work=True),
    Library("waitress", "waitress.server", f"{_I}.wsgi_servers:patch_servers", brings_work=True),
    Library("cheroot", "cheroot.wsgi", f"{_I}.wsgi_servers:patch_servers", brings_work=True),
    Library("celery", "celery.signals", f"{_I}.tasks:patch_celery", brings_work=True),
    Library("dramatiq", "dramatiq.worker", f"{_I}.tasks:patch_dramatiq", brings_work=True),
    Library("rq", "rq.worker", f"{_I}.tasks:patch_rq", brings_work=True),
    Library("ipython", "IPython.core.events", f"{_I}.tasks:patch_ipython"),
)

_KINDS: dict[str, Any] = {
    "stall": "loopcanary.kinds.stall:StallKind",
    "jank": "loopcanary.kinds.jank:JankKind",
    "input": "loopcanary.kinds.input:InputKind",
    "idle": "loopcanary.kinds.idle:IdleKind",
    "startup": "loopcanary.kinds.startup:StartupKind",
    "slow-method": "loopcanary.kinds.slow_method:SlowMethodKind",
    "deadlock": "loopcanary.kinds.deadlock:DeadlockKind",
    "lock-leak": "loopcanary.kinds.lock_leak:LockLeakKind",
    "finding": "loopcanary.kinds.finding:FindingKind",
    "blocked-window": "loopcanary.kinds.blocked_window:BlockedWindowKind",
    "boot-hang": "loopcanary.kinds.hangs:BootHangKind",
    "exit-hang": "loopcanary.kinds.hangs:ExitHangKind",
}
_CAUSES: dict[str, Any] = {  # in the order in which they are asked: diagnosis.causes says why
    "crash": "loopcanary.diagnosis.causes.verdict:find_crash",
    "host": "loopcanary.diagnosis.causes.host:find_host",
    "garbage": "loopcanary.diagnosis.causes.garbage:find_garbage",
    "burst": "loopcanary.diagnosis.causes.burst:find_burst",
    "own": "loopcanary.diagnosis.causes.locks:find_own",
    "gil": "loopcanary.diagnosis.causes.locks:find_gil",
    "imports": "loopcanary.diagnosis.causes.imports:find_imports",
    "dns": "loopcanary.diagnosis.causes.waits:find_dns",
    "terminal": "loopcanary.diagnosis.causes.waits:find_terminal",
    "child": "loopcanary.diagnosis.causes.waits:find_child",
    "sleep": "loopcanary.diagnosis.causes.waits:find_sleep",
    "lock": "loopcanary.diagnosis.causes.locks:find_lock",
    "network": "loopcanary.diagnosis.causes.waits:find_network",
    "disk": "loopcanary.diagnosis.causes.disk:find_disk",
    "native": "loopcanary.diagnosis.causes.computing:find_native",
    "compute": "loopcanary.diagnosis.causes.computing:find_compute",
    "unknown": "loopcanary.diagnosis.causes.verdict:find_unknown",
}
_REMEDIES: dict[str, Any] = {
    "calls": "loopcanary.words.remedies.calls:CALLS",
    "loops": "loopcanary.words.remedies.loops:LOOPS",
    "causes": "loopcanary.words.remedies.causes:CAUSES",
    "topics": "loopcanary.words.remedies.causes:TOPICS",
}
_REPORTERS: dict[str, Any] = {
    "console": "loopcanary.reporters.wanted:console",
    "log file": "loopcanary.reporters.wanted:log_file",
    "bell": "loopcanary.reporters.wanted:bell",
    "exit status": "loopcanary.reporters.wanted:exit_status",
}
_EXPORTERS: dict[str, Any] = {
    "perfetto": "loopcanary.exporters.as_chrome:FORMAT",
    "chrome": "loopcanary.exporters.as_chrome:FORMAT",
    "firefox": "loopcanary.exporters.as_firefox:FORMAT",
    "speedscope": "loopcanary.exporters.as_speedscope:FORMAT",
    "pprof": "loopcanary.exporters.as_pprof:FORMAT",
    "collapsed": "loopcanary.exporters.as_collapsed:FORMAT",
    "csv": "loopcanary.exporters.as_csv:FORMAT",
    "jsonl": "loopcanary.exporters.as_jsonl:FORMAT",
    "matrix": "loopcanary.exporters.as_matrix:FORMAT",
}

_TRACERS: dict[str, Any] = {  # of what probes see; made for the first one that reports it
    "frames": "loopcanary.tracers.traces:FrameTraces",
    "input": "loopcanary.tracers.traces:InputTraces",
    "idle": "loopcanary.tracers.traces:IdleTraces",
}

BUILT_IN: dict[str, dict[str, Any]] = {
    LOOPS: {kind.kind: kind for kind in _LOOPS},
    KINDS: _KINDS,
    INTEGRATIONS: {library.name: library for library in _LIBRARIES},
    TRACERS: _TRACERS,
    CAUSES: _CAUSES,
    REMEDIES: _REMEDIES,
    REPORTERS: _REPORTERS,
    EXPORTERS: _EXPORTERS,
    IMPORTERS: {
        "bundle": "loopcanary.bundles.reading:BUNDLE",
        "blockcanary": "loopcanary.importers.blockcanary:BLOCKCANARY",
        "matrix": "loopcanary.importers.matrix:MATRIX",
        "anr-watchdog": "loopcanary.importers.watchdog:WATCHDOG",
    },
}
