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
KINDS = "loopcanary.kinds"
CAUSES = "loopcanary.causes"
REMEDIES = "loopcanary.remedies"
INTERCEPTORS = "loopcanary.interceptors"
REPORTERS = "loopcanary.reporters"
EXPORTERS = "loopcanary.exporters"
IMPORTERS = "loopcanary.importers"
GROUPS = (
    *(LOOPS, INTEGRATIONS, TRACERS, KINDS, CAUSES, REMEDIES),
    *(INTERCEPTORS, REPORTERS, EXPORTERS, IMPORTERS),
)


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


class Kind:
    """What the parts ask about one kind of issue. All but words and `place` may be `module:object`, loaded
    when needed. Most are functions, and None where the kind has no such thing, or has it as most kinds do."""

    FUNCTIONS = (
        *("after", "evidence", "figures", "fitted", "grouped", "identity", "in_full", "lead", "notice"),
        *("packed", "page", "parts", "run", "title", "tree", "unpacked", "why"),
    )
    __slots__ = (*FUNCTIONS, "list_words", "noun", "place", "type", "words")

    type: object
    """The frozen dataclass of its issues, below model.IssueFacts; its `kind` is the registered name. A text
    field that is not one of IssueFacts is redacted as a name."""
    words: str
    """What people call one issue."""
    list_words: str
    """What they call many."""
    noun: str
    """What issues of a bug are counted as."""
    place: str
    """Of issues that are judged from the stalls in them: the field that says where they were seen, which is
    their bug where no stall was. Empty: a tracer reports them."""
    lead: object
    """Called with an issue: document.parts.Piece, what its headline begins with; else words and length."""
    notice: object
    """Called with an issue: title and reason in a notification, two lines."""
    in_full: object
    """Called with the first issue of a bug, the terminal's look, and words for the process: its text on the
    console, where its bugs are then counted and summed up; else a line."""
    evidence: object
    """Called with an issue: its figures against their limits, sentences."""
    why: object
    """Called with an issue: blocks of a document, its place, cause and evidence."""
    figures: object
    """Called with an issue: document.parts.Facts, labelled figures of its own."""
    parts: object
    """Called with an issue: blocks that follow its facts."""
    tree: object
    """Called with an issue: ui.pages.traced.trees.IssueTree, which its page shows in place of `parts`."""
    page: object
    """Called with an issue: ui.pages.stall.StallSections, which its page shows in place of `parts`."""
    after: object
    """Called with an issue: blocks that follow its stacks."""
    run: object
    """Called with an issue: what it says of its run, in a line of the report."""
    title: object
    """Called with an issue that has none, as its tracer left it out or it was redacted: one line."""
    identity: object
    """Called with an issue: what is the same for the same bug, texts `name=value`."""
    grouped: object
    """Called with an issue: the parts of its fingerprint, texts `name=value`; else `place` or `identity`."""
    fitted: object
    """Called with an issue that a tracer reported, and the session: the issue cut to size and completed.
    ValueError: it is refused."""
    packed: object
    """Called with an issue: a dict, as which a store keeps it; else as in JSON."""
    unpacked: object
    """Called with such a dict: the issue. ValueError: it is none."""

    def __init__(
        self,
        type: object,  # noqa: A002 - it is the type
        *,
        words: str,
        list_words: str = "",
        noun: str = "issue",
        place: str = "",
        **functions: object,
    ) -> None:
        """What is known of a kind; `list_words` are `words` where none are given.

        Raises:
            TypeError: There is no such function.
        """
        self.type = type
        self.words = words
        self.list_words = list_words or words
        self.noun = noun
        self.place = place
        for name in self.FUNCTIONS:
            setattr(self, name, functions.pop(name, None))
        if functions:
            raise TypeError(f"a kind has no {', '.join(functions)}")


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
    _loop("uvloop", "uvloop.loop", "uvloop.probe:UvloopProbe", "uvloop.portable:PortableUvloopProbe"),
    _loop("pygame", "pygame", "pygame.probe:PygameProbe", "pygame.probe:PygameProbe"),
    _loop("gevent", "gevent.hub", "gevent:GeventProbe"),
    _loop("trio", "trio._core._run", "trio:TrioProbe", "trio.portable:PortableTrioProbe"),
    _loop("qt", _QT, "qt.probe:QtProbe", "qt.portable:PortableQtProbe"),
    _loop("twisted", "twisted.internet.base", "twisted.probe:TwistedProbe", "twisted.probe:TwistedProbe"),
    _loop("tk", "tkinter", "tk.probe:TkProbe", "tk.portable:PortableTkProbe"),
    _loop("glib", "gi.overrides.GLib", "glib.probe:GLibProbe"),
)

_LIBRARIES = (
    Library("starlette", "starlette.routing", f"{_I}.web.starlette:patch"),
    Library("fastapi", "fastapi.routing", f"{_I}.web.fastapi:patch"),
    Library("aiohttp", "aiohttp.web_app", f"{_I}.web.aiohttp:patch"),
    Library("tornado", "tornado.web", f"{_I}.web.tornado:patch"),
    Library("quart", "quart.app", f"{_I}.web.quart:patch"),
    Library("twisted_web", "twisted.web.server", f"{_I}.web.twisted:patch"),
    Library("uvicorn_h11", "uvicorn.protocols.http.h11_impl", f"{_I}.servers.uvicorn:patch"),
    Library("uvicorn_httptools", "uvicorn.protocols.http.httptools_impl", f"{_I}.servers.uvicorn:patch"),
    Library("uvicorn_server", "uvicorn.server", f"{_I}.servers.uvicorn_server:patch"),
    Library("hypercorn", "hypercorn.protocol.h2", f"{_I}.servers.hypercorn:patch"),
    Library("granian", "granian._futures", f"{_I}.servers.granian:patch"),
    Library("flask", "flask.app", f"{_I}.web.flask:patch", brings_work=True),
    Library("django_wsgi", "django.core.handlers.wsgi", f"{_I}.web.django_wsgi:patch", brings_work=True),
    Library("django_routes", "django.core.handlers.base", f"{_I}.web.django_routes:patch"),
    Library("wsgiref", "wsgiref.handlers", f"{_I}.servers.wsgiref:patch", brings_work=True),
    Library("werkzeug", "werkzeug.serving", f"{_I}.servers.wsgi:patch", brings_work=True),
    Library("gunicorn", "gunicorn.workers.base", f"{_I}.servers.gunicorn:patch", brings_work=True),
    Library("waitress", "waitress.server", f"{_I}.servers.wsgi:patch", brings_work=True),
    Library("cheroot", "cheroot.wsgi", f"{_I}.servers.wsgi:patch", brings_work=True),
    Library("celery", "celery.signals", f"{_I}.tasks.celery:patch", brings_work=True),
    Library("dramatiq", "dramatiq.worker", f"{_I}.tasks.dramatiq:patch", brings_work=True),
    Library("rq", "rq.worker", f"{_I}.tasks.rq:patch", brings_work=True),
)

_W = "loopcanary.words.lags"
_R = "loopcanary.report.kinds"
_LISTED = "frames, input, idle work"

_KINDS: dict[str, Any] = {
    "stall": Kind(
        "loopcanary.model:Stall",
        words="stall",
        noun="stall",
        lead="loopcanary.document.verdict:severity",
        notice="loopcanary.notifications.notice:stall_words",
        in_full="loopcanary.reporters.blocks:stall_block",
        evidence=f"{_W}:of_stall",
        why=f"{_R}.stall:why",
        figures=f"{_R}.stall:figures",
        parts=f"{_R}.stall:parts",
        after=f"{_R}.stall:after",
        tree="loopcanary.ui.pages.traced.trees:traced_tree",
        page="loopcanary.ui.pages.stall:sections",
        grouped="loopcanary.assembly.explanations:stall_parts",
        packed="loopcanary.store.packing:pack",
        unpacked="loopcanary.store.packing:unpack",
    ),
    "jank": Kind(
        "loopcanary.model:Jank",
        words="jank",
        list_words=_LISTED,
        evidence=f"{_W}:of_jank",
        figures=f"{_R}.jank:figures",
        parts=f"{_R}.jank:parts",
        place="scene",
    ),
    "input": Kind(
        "loopcanary.model:InputLag",
        words="late input",
        list_words=_LISTED,
        evidence=f"{_W}:of_input",
        figures=f"{_R}.lags:input_figures",
        parts=f"{_R}.lags:input_parts",
        place="event",
    ),
    "idle": Kind(
        "loopcanary.model:IdleLag",
        words="idle work",
        list_words=_LISTED,
        evidence=f"{_W}:of_idle",
        figures=f"{_R}.lags:idle_figures",
        place="handler",
    ),
    "startup": Kind(
        "loopcanary.model:Startup",
        words="startup",
        list_words="starts",
        evidence=f"{_W}:of_start",
        figures=f"{_R}.traced:start_figures",
        parts=f"{_R}.traced:start_parts",
        run="loopcanary.words.traced:run_words",
        tree="loopcanary.ui.pages.traced.trees:phase_tree",
        title="loopcanary.words.traced:start_words",
        identity="loopcanary.tracers.starts:identity",
        fitted="loopcanary.tracers.starts:fitted",
    ),
    "slow-method": Kind(
        "loopcanary.model:SlowMethod",
        words="slow method",
        list_words="slow methods",
        evidence=f"{_W}:of_method",
        figures=f"{_R}.traced:method_figures",
        parts=f"{_R}.traced:method_parts",
        tree="loopcanary.ui.pages.traced.trees:call_tree",
        title="loopcanary.words.traced:method_words",
        identity="loopcanary.tracers.slow_methods:identity",
        fitted="loopcanary.tracers.slow_methods:fitted",
    ),
    "deadlock": Kind(
        "loopcanary.model.issues.locks:Deadlock",
        words="deadlock",
        list_words="deadlocks",
        evidence="loopcanary.words.locks:of_deadlock",
        parts=f"{_R}.locks:deadlock_parts",
        title="loopcanary.words.locks:deadlock_words",
        identity="loopcanary.tracers.locks.fitting:deadlock_identity",
        fitted="loopcanary.assembly.tracing.locks:fitted_deadlock",
    ),
    "lock-leak": Kind(
        "loopcanary.model.issues.locks:LockLeak",
        words="lock not released",
        list_words="locks not released",
        evidence="loopcanary.words.locks:of_leak",
        figures=f"{_R}.locks:leak_figures",
        parts=f"{_R}.locks:leak_parts",
        title="loopcanary.words.locks:leak_words",
        identity="loopcanary.tracers.locks.fitting:leak_identity",
        fitted="loopcanary.assembly.tracing.locks:fitted_leak",
    ),
    "lock-order": Kind(
        "loopcanary.model.issues.lock_orders:LockOrder",
        words="lock order",
        list_words="lock orders",
        notice="loopcanary.words.locks:order_notice",
        evidence="loopcanary.words.locks:of_order",
        why=f"{_R}.lock_orders:why",
        parts=f"{_R}.lock_orders:parts",
        title="loopcanary.words.locks:order_words",
        identity="loopcanary.tracers.orders.fitting:identity",
        fitted="loopcanary.assembly.tracing.orders:fitted",
    ),
    "finding": Kind(
        "loopcanary.model:ImportedFinding",
        words="finding",
        list_words="findings",
        why=f"{_R}.findings:why",
        evidence="loopcanary.words.findings:of_finding",
        figures=f"{_R}.findings:figures",
        parts=f"{_R}.findings:parts",
        title="loopcanary.words.findings:finding_words",
        identity="loopcanary.assembly.findings:identity",
    ),
    "blocked-window": Kind(
        "loopcanary.model.issues.windows:BlockedWindow",
        words="blocked window",
        list_words="blocked windows",
        evidence="loopcanary.words.windows:of_window",
        why=f"{_R}.windows:why",
        parts=f"{_R}.windows:parts",
        title="loopcanary.words.windows:window_words",
        identity="loopcanary.assembly.tracing.windows:identity",
        fitted="loopcanary.assembly.tracing.windows:fitted",
    ),
}

_CAUSES: dict[str, Any] = {
    name: f"loopcanary.diagnosis.causes.{name}:find_{name}"
    for name in (  # in the order in which they are asked: diagnosis.causes says why
        *("crash", "host", "garbage", "burst", "own", "gil", "imports", "dns", "terminal", "child"),
        *("sleep", "lock", "network", "disk", "native", "compute", "unknown"),
    )
}
_REMEDIES: dict[str, Any] = {
    "calls": "loopcanary.words.remedies.calls:CALLS",
    "loops": "loopcanary.words.remedies.loops:LOOPS",
    "causes": "loopcanary.words.remedies.causes:CAUSES",
    "topics": "loopcanary.words.remedies.causes:TOPICS",
    "frameworks": "loopcanary.words.remedies.causes:FRAMEWORKS",
}
_REPORTERS: dict[str, Any] = {
    "console": "loopcanary.reporters.wanted:console",
    "log file": "loopcanary.reporters.wanted:log_file",
    "bell": "loopcanary.reporters.wanted:bell",
    "exit status": "loopcanary.reporters.wanted:exit_status",
}
_EXPORTERS: dict[str, Any] = {
    name: f"loopcanary.exporters.as_{name}:FORMAT"
    for name in (
        *("perfetto", "chrome", "firefox", "speedscope", "pprof", "collapsed", "csv", "jsonl", "matrix"),
    )
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
        "bundle": "loopcanary.bundles.importer:BUNDLE",
        "blockcanary": "loopcanary.importers.blockcanary:BLOCKCANARY",
        "matrix": "loopcanary.importers.matrix:MATRIX",
        "traces": "loopcanary.importers.traces:TRACES",
        "anr-watchdog": "loopcanary.importers.watchdog:WATCHDOG",
    },
}
