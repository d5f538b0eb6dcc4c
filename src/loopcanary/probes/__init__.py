"""Probes: what each kind of loop does, reported to the engine. One module or folder a kind.

Here is what they share: to wait for an import, to be loaded then, to patch what was imported. And the answers
of servers, of whatever loop.
"""

from __future__ import annotations

import sys

from loopcanary.patches import OFF, ON, Patches, note
from loopcanary.registry import load
from loopcanary.whose_exception import ours, ours_of

TYPE_CHECKING = False  # typing is not loaded for it

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.model import InputFigures
    from loopcanary.protocols.loops import PortableSide, Probe, Windows
    from loopcanary.protocols.tracing import Tracers
    from loopcanary.registry import LoopKind


_run_to_its_end: set[str] = set()
"""Modules that are whole at this moment, though their spec does not say so yet."""


def is_half_imported(name: str) -> bool:
    """Whether the module's code still runs: it may, deep inside, have imported what was awaited."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name not in _run_to_its_end and bool(getattr(spec, "_initializing", False))


_Spec = type(sys.__spec__)
"""importlib.machinery.ModuleSpec, which is not imported for it."""


class _TellingSpec(_Spec):  # type: ignore[misc, valid-type]
    """Calls back when the import machinery has finished the module's import. It has no hook for that, but
    sets this attribute, whether the module's code came to its end or failed."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            self.__class__ = _Spec  # type: ignore[assignment]
            for tell in self.__dict__.pop("_loopcanary_tells", ()):
                tell()


def tell_when_whole(module: ModuleType, tell: Callable[[], object]) -> None:
    """Calls when an import that is under way is over; never where that cannot be learnt.

    Args:
        module: As it lies in sys.modules, half imported.
        tell: Called on the importing thread. It must not raise.
    """
    spec = module.__spec__
    if type(spec) is _Spec:
        spec.__class__ = _TellingSpec
    if isinstance(spec, _TellingSpec):
        spec.__dict__.setdefault("_loopcanary_tells", []).append(tell)


class _AfterExec:
    """The module's own loader, and a call after it has run the module."""

    def __init__(self, loader: Loader, after: Callable[[], object]) -> None:
        self._loader = loader
        self._after = after

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _run_to_its_end.add(module.__name__)
        try:
            self._after()
        finally:
            _run_to_its_end.discard(module.__name__)


class LoopcanaryFinder:
    """Is first on sys.meta_path while any ImportWatch waits, and delegates to the finders behind it."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[ImportWatch]] = {}
        self._searching: set[str] = set()

    def add(self, watch: ImportWatch) -> None:
        for name in watch.names:
            self._waiting.setdefault(name, []).append(watch)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
            note(ON, "hook sys.meta_path")

    def remove(self, watch: ImportWatch) -> None:
        """Idempotent."""
        for name in watch.names:
            left = [other for other in self._waiting.pop(name, ()) if other is not watch]
            if left:
                self._waiting[name] = left
        if not self._waiting and self in sys.meta_path:
            # In a new list: a thread that imports just now goes on through the old one. Had that become
            # shorter, it would pass over a finder and not find its module. No call here, for no other
            # thread comes between: what it inserted would be lost.
            place = sys.meta_path.index(self)
            sys.meta_path = sys.meta_path[:place] + sys.meta_path[place + 1 :]
            note(OFF, "hook sys.meta_path")

    def has(self, watch: ImportWatch) -> bool:
        return any(watch in waiting for waiting in self._waiting.values())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the finders behind this one give, with the call back added to its loader."""
        if fullname not in self._waiting or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = self._behind(fullname, path, target)
        finally:
            self._searching.discard(fullname)
        # Loaders of before 3.4 have load_module alone: what they load is not waited for.
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _AfterExec(spec.loader, lambda: self._fire(fullname))  # type: ignore[assignment]
        return spec

    def _behind(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def _fire(self, fullname: str) -> None:
        for watch in list(self._waiting.get(fullname, ())):
            watch.fire()


_FINDER = LoopcanaryFinder()


class ImportWatch:
    """Calls `after` once, when the first of the modules `names` has been imported; at once if one is there.

    Runs on the importing thread. `after` must not raise.
    """

    def __init__(self, names: str | Sequence[str], after: Callable[[], object]) -> None:
        self.names = frozenset((names,) if isinstance(names, str) else names)
        self._after = after
        self._half: set[str] = set()

    def start(self) -> None:
        """Waits for a module, or calls back now."""
        there = self.names.intersection(sys.modules)
        self._half = {name for name in there if is_half_imported(name)}
        if there - self._half:
            self._after()
        else:
            _FINDER.add(self)
            for name in self._half:
                tell_when_whole(sys.modules[name], self._is_whole)

    @property
    def is_waiting(self) -> bool:
        """Whether it has been started, and has neither fired nor been cancelled."""
        return _FINDER.has(self)

    def cancel(self) -> None:
        """Stops waiting. Idempotent."""
        _FINDER.remove(self)

    def fire(self) -> None:
        """Stops waiting and calls back."""
        self.cancel()
        self._after()

    def _is_whole(self) -> None:
        """One that was half imported is whole by now; or its import has failed, and left nothing."""
        if self.is_waiting and not self._half.isdisjoint(sys.modules):
            self.fire()


class LateProbe:
    """Stands for the probe of one kind until a loop of the kind can be made."""

    def __init__(
        self,
        kind: LoopKind,
        native: Native | PortableSide,
        loop_seen: Callable[[], None],
        contain: Callable[[Callable[[], None]], object],
        tracers: Callable[[], Tracers] | None = None,
        *,
        windows: Callable[[], Windows] | None = None,
        probe: str,
    ) -> None:
        """Loads nothing yet.

        Args:
            kind: What is registered.
            native: The extension, or the portable engine's side.
            loop_seen: Called when a loop begins to run.
            contain: Calls a function, and nothing that it raises gets out: probes are loaded in the middle of
                the program's own imports.
            tracers: For a probe that reports frames, input or idle work (protocols.Traced).
            windows: For one of a toolkit with windows (protocols.Windowed).
            probe: `module:object`, the one of the engine that runs.
        """
        self.kind = kind.kind
        self._where = probe
        self._native = native
        self._loop_seen = loop_seen
        self._contain = contain
        self._tracers = tracers
        self._windows = windows
        self._watch = ImportWatch(kind.awaits, lambda: contain(self._load))
        self._probe: Probe | None = None
        self._is_on = False

    def install(self) -> None:
        """Loads and installs the probe, now or when its library is imported. Idempotent."""
        self._is_on = True
        if self._probe is None:
            self._watch.cancel()
            self._watch.start()
        else:
            self._probe.install()

    def uninstall(self) -> None:
        self._is_on = False
        self._watch.cancel()
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.uninstall()

    def notes(self) -> Sequence[str]:
        """What the probe has to say of itself: that its library is too old, what it cannot see."""
        notes: Callable[[], Sequence[str]] | None = getattr(self._probe, "notes", None)
        return () if notes is None else notes()

    def _load(self) -> None:
        self._probe = probe = load(self._where)(self._native, self._loop_seen, self._contain)
        if self._tracers is not None and hasattr(probe, "use_tracers"):
            probe.use_tracers(self._tracers())
        elif self._tracers is not None and hasattr(probe, "use_tracers_when_needed"):
            probe.use_tracers_when_needed(self._tracers)
        if self._windows is not None and hasattr(probe, "use_windows"):
            probe.use_windows(self._windows())
        probe.install()
        if not self._is_on:  # another thread has uninstalled meanwhile, and found no probe
            probe.uninstall()


def is_from(function: object, module: ModuleType) -> bool:
    """Whether the function is the module's own: its code is of the module's file."""
    return hasattr(function, "__code__") and getattr(function, "__globals__", None) is vars(module)


def loaded(part: str) -> dict[str, int]:
    """Files that are mapped into this process whose path has `part` in it, and an address in each."""
    places: dict[str, int] = {}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
            for line in maps:
                if part in line:
                    places.setdefault(line.split(maxsplit=5)[-1].rstrip(), int(line.partition("-")[0], 16))
    except ours_of(OSError):
        return places
    return places


class PatchingProbe:
    """Implements protocols.loops.Probe for a library that is imported: a probe says what it patches, and what
    it takes back beside patches."""

    kind: str

    def __init__(
        self,
        engine: Any,
        loop_seen: Callable[[], None],
        contain: Callable[[Callable[[], None]], object],
    ) -> None:
        """As registry.LoopKind says; `engine`: the extension, or a protocols.loops.PortableSide."""
        self._engine = engine
        self._loop_seen = loop_seen
        self._contain = contain
        self._is_on = False
        self._patches = Patches()
        self._watches: Sequence[ImportWatch] = ()
        """More of the library, which may be imported later."""
        self._notes: list[str] = []

    def install(self) -> None:
        """Patches the library; also where its loop runs already. Idempotent."""
        if not self._is_on:
            self._is_on = True
            self._notes.clear()
            self._contain(self._patch)
            for watch in self._watches:
                watch.start()

    def uninstall(self) -> None:
        """Takes back every patch that is still ours; what others have put over it stays. Idempotent."""
        if self._is_on:
            self._is_on = False
            for watch in self._watches:
                watch.cancel()
            self._take_back()

    def notes(self) -> Sequence[str]:
        """Lines that say what of this library cannot be seen."""
        return tuple(self._notes)

    def _patch(self) -> None:
        """What is there from the beginning."""

    def _take_back(self) -> None:
        self._patches.take_back()


class PollingProbe(PatchingProbe):
    """For a library whose loop programs turn by hand, too (probes.polled), with the native engine."""

    _polled: Any = None

    def _pumping(self, original: Callable[..., Any]) -> Any:
        """What takes the place of a function that looks for the library's events once."""

        def pump(*args: Any, **names: Any) -> Any:
            try:
                begun = self._begin_pump()
            except ours():  # such as at the interpreter's end
                return original(*args, **names)
            try:
                return original(*args, **names)
            finally:
                self._end_pump(begun, 2)

        return _named_as(original, pump)

    def _pumping_natively(self, original: Callable[..., Any], *, is_bound: bool) -> Any:
        """The same without a frame of Python's around the original."""
        return self._engine.enclosed(original, self._begin_pump, self._end_pump, is_bound)

    def _begin_pump(self) -> tuple[bool, bool] | None:
        if self._polled is None:
            from loopcanary.probes.polled import Polled  # few programs turn a loop by hand

            self._polled = Polled(self._engine.LoopHooks(self.kind))
        begun: tuple[bool, bool] = self._polled.begin()
        return begun

    def _end_pump(self, begun: tuple[bool, bool] | None, outward: int = 1) -> None:
        if begun is not None:
            self._polled.end(begun, sys._getframe(outward))

    def _lay(self, owner: Any, name: str, make: Callable[[Any], object]) -> None:
        """Puts `make(original)` in the place of what the owner has or makes when it is asked for."""
        original = getattr(owner, name, None)
        if self._is_on and original is not None:
            self._patches.lay(owner, name, make(original))

    def _closing(self, original: Callable[..., Any]) -> Any:
        """What takes the place of a function that takes a window from the screen."""

        def close(*args: Any, **names: Any) -> Any:
            try:
                return original(*args, **names)
            finally:
                if self._polled is not None:
                    self._polled.over()

        return _named_as(original, close)

    def _take_back(self) -> None:
        super()._take_back()
        if self._polled is not None:
            self._polled.over()


def _named_as(original: Any, function: Any) -> Any:
    """The function, by the original's name. PySide would make the signatures of a whole class, of which it
    has not all types yet, where it is asked for a `__doc__`."""
    for attribute in ("__module__", "__name__", "__qualname__"):
        value = getattr(original, attribute, None)
        if value is not None:
            setattr(function, attribute, value)
    function.__wrapped__ = original
    return function


_WITHOUT_LOOP = "(threads)"
"""The common name of threads without a loop, such as those of WSGI servers."""


class AnswersProbe:
    """Times the answers to HTTP/1 requests on TCP sockets, of Python's and of uvloop's, in clear: seen where
    these ask the system to receive and send (native/probes/answers/hook.c), whatever server, protocol or
    stream of Python's is above them. Linux."""

    kind = "answers"

    def __init__(self, native: Native, contain: Callable[[Callable[[], None]], object]) -> None:
        """`contain` calls a function, and nothing that it raises gets out."""
        self._native = native
        self._watches = [
            ImportWatch("_socket", lambda: contain(self._hook_sockets)),
            ImportWatch("uvloop.loop", lambda: contain(self._hook_uvloop)),
        ]
        self._hooked: list[int | str] = []

    def install(self) -> None:
        """Hooks what is imported, the others when they are. Idempotent."""
        if not self._hooked:
            for watch in self._watches:
                watch.cancel()
                watch.start()

    def uninstall(self) -> None:
        """Takes back every hook that is still ours. What was timed can still be read."""
        for watch in self._watches:
            watch.cancel()
        hooked, self._hooked = self._hooked, []
        for where in hooked:
            self._native.unhook_answers(where)

    def _hook_sockets(self) -> None:
        sockets = sys.modules["_socket"]
        self._hook(self._native.c_code(sockets.socket.recv))

    def _hook_uvloop(self) -> None:
        file = getattr(sys.modules["uvloop.loop"], "__file__", None)
        if file:
            self._hook(file)

    def _hook(self, where: int | str) -> None:
        if where and self._native.hook_answers(where):
            self._hooked.append(where)


def answer_figures(native: Native) -> Sequence[InputFigures]:
    """Figures of the answers that were timed so far; one answer more or less. Any thread."""
    rows = native.answers()
    if not rows:
        return ()
    from loopcanary.model.config import REQUESTS_ONE_OF
    from loopcanary.model.figures import InputFigures, quantile_ns

    return [
        InputFigures(
            thread=thread or _WITHOUT_LOOP,
            loop="requests",
            events=events,
            p50_ns=min(quantile_ns(counts, 0.5), worst_ns),
            p98_ns=min(quantile_ns(counts, 0.98), worst_ns),
            worst_ns=worst_ns,
            worst=worst or None,
            queued_ns=waited_ns,
            lag_ns=lag_ns,
            one_of=REQUESTS_ONE_OF,
        )
        for thread, events, lag_ns, waited_ns, worst_ns, worst, counts in rows
    ]
