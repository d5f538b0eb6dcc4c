"""The engine whose stalls a keeper judges, put together; and whether there can be a keeper."""

from __future__ import annotations

import os
import sys

from loopcanary import keeper as place
from loopcanary.config import settings_as_environment
from loopcanary.engine.attachment import priority_changes
from loopcanary.engine.kept import KeptEngine
from loopcanary.engine.recorder import Recorder
from loopcanary.facts import OWN_CODE, code_origin, code_paths, session_facts
from loopcanary.model.config import FAILED_ON_STALL, ON
from loopcanary.registry import INTERCEPTORS, KINDS, REGISTRY, REPORTERS, TRACERS
from loopcanary.whose_exception import ours_of
from loopcanary.whose_stderr import console_facts, is_by_hand

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.assembly.kept_figures import KeptFigures
    from loopcanary.engine.canary import Canary
    from loopcanary.engine.recorder import KeeperLine
    from loopcanary.model.config import Config
    from loopcanary.protocols.plugins import Tracer
    from loopcanary.tracers.plugged import PluggedTracers

END_PATIENCE_S = 1.0
"""How long the end of a program with stalls waits until a keeper has stored and reported them."""
_COUNTING_PATIENCE_S = 5.0
"""As long where the exit status depends on it."""
CELLS_HERE = "only the program has the source of IPython's cells"
NO_KEEPER = "no_keeper"
"""Key of the facts: why the program judges its stalls itself."""
COUNTS = "counts"
"""Likewise, at the end: what the program has counted that a keeper has not."""
FLIGHT_FOLDER = "flight"
"""As the store has it, which is not loaded here."""


def no_keeper(config: Config, *, is_native: bool, is_store_usable: bool) -> str | None:
    """Why this process has to judge its stalls itself; None: a keeper does."""
    if not config.keeper:
        return "the settings say so"
    if not is_native:
        return "the portable engine has no flight file"
    if (problem := place.no_interpreter()) is not None:
        return problem
    if "IPython" in sys.modules:
        return CELLS_HERE
    if not is_store_usable:
        return "no store can be written"
    if config.locks:
        return "locks are traced in the program"
    if config.windows_ns:
        return "windows are traced in the program"
    return _own_tracer() or ((own := own_code()) and sees_stalls(own))


def _own_tracer() -> str | None:
    """A keeper finds what packages bring, and not what the program registers itself."""
    theirs = [one for one in (*REGISTRY.of(TRACERS), *REGISTRY.own(KINDS)) if not one.is_built_in]
    own = next((one for one in theirs if not one.origin), None)
    has_tracer = any(one.group == TRACERS for one in theirs)
    return f"the plugin {own.name} ({own.group}) runs in the program" if own and has_tracer else None


def own_code() -> str | None:
    """What of the program's own sees its stalls; None: nothing."""
    if REGISTRY.interceptors:
        return "on_issue"
    for group in (INTERCEPTORS, REPORTERS):
        for one in REGISTRY.own(group):
            return f"the plugin {one.name} ({group})"
    return None


def sees_stalls(own: str) -> str:
    """As a reason to judge in the program. `own`: see own_code."""
    return f"{own} of the program sees them"


def make_kept(canary: Canary, native: Native) -> KeptEngine:
    """Not yet started."""
    config = canary.config
    folder = config.store
    assert folder is not None
    facts = OwnFacts(canary, engine="native")
    recorder = Recorder(native, config, folder=flight_folder(config), session_id=facts.session["id"])
    return KeptEngine(
        recorder,
        canary.boundary,
        keeper=lambda: _line(folder, facts.key),
        facts=facts,
        traced=canary.tracing,
        plugged=made_tracers(canary, native, {}),
        figures=lambda: _figures(canary, recorder, facts),
        loads=canary.load,
        refused=lambda: canary.keeper_refused(_why_refused(native)),
        note=lambda traces: _note(recorder, traces),
        ended=lambda: _end(canary, recorder, facts),
    )


def flight_folder(config: Config) -> str:
    """The folder of the store's flight files."""
    place.use(config.flight_dir)
    return place.below(config.store or "", FLIGHT_FOLDER, make=True)


def made_tracers(
    canary: Canary, native: Native | None, own: dict[str, Callable[[], Tracer]]
) -> PluggedTracers | None:
    """Third parties' tracers and these of ours, not yet started; None: there are none, as in most programs,
    and nothing is loaded for them."""
    makers = {one.name: make for one, make in REGISTRY.plugged(TRACERS)}
    if not (makers or own):
        return None
    from loopcanary.assembly.tracing.all import plugged_tracers

    return plugged_tracers(canary, native, makers, own)


def _note(recorder: Recorder, traces: Any) -> None:
    """Has the traces note what they see beside the flight file."""
    from loopcanary.tracers.notes import Notes

    assert recorder.file is not None
    traces.keep(Notes(recorder.file, lambda: recorder.native.ring_keeper(0.0)))


def _why_refused(native: Native) -> str:
    import errno

    outcome = native.no_keeper()
    if outcome == errno.EBUSY:
        return "the keeper is alive but does nothing: was it stopped?"
    if outcome == errno.EPERM and (problem := place.no_reaper()) is not None:
        return problem
    if outcome in (errno.EINPROGRESS, errno.EAGAIN):
        return "keepers were started, but none responds"
    return f"no keeper can be started: {os.strerror(outcome)}"


def _line(store: str, key: str) -> KeeperLine:
    """Command, environment and paths to start the store's keeper and to ring it. OSError: its folder cannot
    be made."""
    place.prepare(store)
    variables = (f"{name}={value}" for name, value in place.environment().items())
    return (
        tuple(map(os.fsencode, place.command(store))),
        tuple(map(os.fsencode, variables)),
        os.fsencode(place.path_in_memory(store, place.MARK, key)),
        os.fsencode(place.path_in_memory(store, place.BELL, key)),
    )


class OwnFacts:
    """What lies beside the evidence: the session, in its form on the wire, and what a keeper or a recovery
    has to know."""

    def __init__(self, canary: Canary, *, engine: str) -> None:
        config = canary.config
        self._canary = canary
        self.session = session_facts(config, engine=engine)
        self.key = place.key()
        self._told: dict[str, Any] = {
            "settings": settings_as_environment(config),
            "store": config.store,
            "stderr": console_facts(),
        }
        self._origin: object = None

    def code_paths(self) -> dict[str, Any]:
        """Where the program's code lies, as far as it is known by now; a new dictionary where that has
        changed."""
        if (origin := code_origin()) != self._origin:
            self._origin, self._told["code_paths"] = origin, code_paths()
        paths: dict[str, Any] = self._told["code_paths"]
        return paths

    def __call__(self) -> dict[str, Any]:
        """All of them, as they are now."""
        self.code_paths()
        changes = {"priority_changes": priority_changes} if priority_changes else {}
        reason = self._canary.no_keeper
        judge = {"keeper": self.key} if reason is None else {NO_KEEPER: reason}
        own = {OWN_CODE: own_code()}
        return {**self.session, **changes, **self._told, **judge, **own, **self._canary.tracing.facts()}


def _figures(canary: Canary, recorder: Recorder, facts: OwnFacts) -> KeptFigures:
    from loopcanary.assembly.kept_figures import KeptFigures

    return KeptFigures(canary.config, recorder, facts.session)


def _end(canary: Canary, recorder: Recorder, facts: OwnFacts) -> None:
    """Says that there was no stall, or waits a moment for the keeper to have said what there was."""
    _note_last(canary, recorder, facts)
    noted = canary.tracing.end_noting()
    lanes, stalls = recorder.native.recorded()
    if stalls or noted or recorder.native.calls_slow():
        _wait_for_keeper(canary, recorder, facts)
        return
    if lanes and is_by_hand() and canary.config.console == ON:
        figures = _figures(canary, recorder, facts)
        figures.say_clean()
        figures.close()
    recorder.stop()
    if not lanes and not is_by_hand() and not canary.config.startup:
        recorder.discard()  # nothing was watched in it, as in most children
    else:
        _leave(canary, recorder)


def _leave(canary: Canary, recorder: Recorder, *, is_awaited: bool = False) -> None:
    """What is left is for the next that reads the store, if no keeper is at work. The disk may not answer.

    `is_awaited`: a keeper is on its way. It finds all where it was: else it would look for the traced calls
    in one place while they are moved to the other.
    """
    native, folder, flight = recorder.native, canary.config.store, recorder.place

    def keep() -> None:
        # After a change of the user it may be out of reach: it is left to a keeper or command of the old one.
        if flight is None or not os.access(flight.path, os.R_OK):
            return
        with canary.boundary("keeper"):
            flight.link_again()  # a keeper makes it again for living programs only
            if place.is_heard(place.bell_path(folder or "")):
                return
            if is_awaited:
                flight.save()
            else:
                flight.settle()

    try:
        thread = native.start_thread(keep)
    except ours_of(OSError):  # no thread may be made: who reads the store next finds the file where it is
        return
    native.join_thread(thread, END_PATIENCE_S)


def _note_last(canary: Canary, recorder: Recorder, facts: OwnFacts) -> None:
    """What is counted in this process alone goes into the facts of the session: failures, reports of tracers,
    latency of requests."""
    plugged = canary.kept and canary.kept.plugged
    counts = {**(plugged.counts() if plugged else {}), **canary.boundary.counts()}
    told: dict[str, Any] = {COUNTS: counts} if counts else {}
    if recorder.native.answers():
        from loopcanary.probes import answer_figures
        from loopcanary.wire import to_wire

        told["input"] = [to_wire(one) for one in answer_figures(recorder.native)]
    if told:
        recorder.set_facts({**facts(), **told})


def _wait_for_keeper(canary: Canary, recorder: Recorder, facts: OwnFacts) -> None:
    config, native = canary.config, recorder.native
    _, stalls = native.recorded()
    is_told = native.end_with_keeper(END_PATIENCE_S)
    if not is_told and config.fail_on_stall and place.is_heard(place.bell_path(config.store or "")):
        is_told = native.end_with_keeper(_COUNTING_PATIENCE_S - END_PATIENCE_S)
    recorder.stop()
    if not is_told:
        # A keeper that came too late for its word has taken it.
        is_told = not os.path.exists(recorder.file or "") or _store_what_is_left(canary, recorder, facts)
    if config.fail_on_stall and stalls and (not is_told or _has_stored(canary, recorder, facts)):
        native.fail_exit(FAILED_ON_STALL)


def _store_what_is_left(canary: Canary, recorder: Recorder, facts: OwnFacts) -> bool:
    """No keeper has taken it: this process does, where its exit status depends on that, or none will. Whether
    all is stored."""
    import errno

    config = canary.config
    there_is_none = recorder.native.keeper_outcome() not in (0, errno.EINPROGRESS)
    counts = config.fail_on_stall and not place.is_heard(place.bell_path(config.store or ""))
    if canary.no_keeper is None and (there_is_none or counts):
        is_stored = False
        with canary.boundary("keeper"):
            is_stored = _store_now(canary, recorder, facts)
        if is_stored:
            if there_is_none:
                canary.boundary.tell("no keeper stored the last stalls: the program has stored them")
            return True
    elif config.console == ON and canary.no_keeper is None:
        canary.boundary.tell("the last stalls are still being stored: `loopcanary report` will show them")
    elif config.console == ON:
        canary.boundary.tell("the stalls are still in the flight file: `loopcanary report` will store them")
    # The first process of a container takes its memory with it.
    _leave(canary, recorder, is_awaited=canary.no_keeper is None and not there_is_none)
    return False


def _store_now(canary: Canary, recorder: Recorder, facts: OwnFacts) -> bool:
    """False: a keeper that was slow to start has it in hand."""
    if recorder.place is not None:
        recorder.place.link_again()
    return _figures(canary, recorder, facts).recover()


def _has_stored(canary: Canary, recorder: Recorder, facts: OwnFacts) -> bool:
    """Whether a stall of this process is stored; where that cannot be read, one was recorded."""
    with canary.boundary("reading"):
        return bool(_figures(canary, recorder, facts).stored())
    return True
