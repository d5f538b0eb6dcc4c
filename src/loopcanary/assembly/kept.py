"""The engine whose stalls a keeper takes, put together; and whether there can be a keeper."""

from __future__ import annotations

import os
import sys

from loopcanary import keeper as place
from loopcanary.config import settings_as_environment
from loopcanary.engine.attachment import priority_changes
from loopcanary.engine.kept import KeptEngine
from loopcanary.engine.recorder import Recorder
from loopcanary.facts import code_origin, code_paths, session_facts
from loopcanary.model.config import FAILED_ON_STALL
from loopcanary.registry import INTERCEPTORS, REGISTRY, REPORTERS, TRACERS
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

END_PATIENCE_S = 1.0
"""How long the end of a program with stalls waits until a keeper has stored and reported them."""
_COUNTING_PATIENCE_S = 5.0
"""As long where the exit status depends on it."""
OWN_CODE = "own_code"
"""Key of the facts: what in the program sees stalls when they have ended; None: a keeper takes them."""
NO_KEEPER = "no_keeper"
"""Likewise: why the program takes its stalls itself."""
FLIGHT_FOLDER = "flight"
"""As the store has it, which is not loaded here."""


def no_keeper(config: Config, *, is_native: bool) -> str | None:
    """Why this process has to take its stalls itself; None: a keeper does."""
    if not config.keeper:
        return "the settings say so"
    if not is_native:
        return "the portable engine has no flight file"
    if (problem := place.no_interpreter()) is not None:
        return problem
    if "IPython" in sys.modules:
        return "the source of IPython's cells is in the program alone"
    return None


def needed_at_start(config: Config, *, has_keeper: bool, is_store_usable: bool) -> str | None:
    """Why what judges is loaded when this process starts; None: with its first stall, if it is at all."""
    if not is_store_usable:
        return "there is no store that can be written"
    if config.locks:
        return "locks are traced in the program"
    if config.lock_order:
        return "orders of locks are traced in the program"
    if config.windows_ns:
        return "windows are traced in the program"
    if config.startup and not has_keeper:
        return "its start is looked at in the program"
    if not has_keeper and set(config.notify) - {"bell"}:
        return "who sends its notifications is started with it"
    tracer = next((one for one in REGISTRY.of(TRACERS) if not one.is_built_in), None)
    return None if tracer is None else f"the plugin {tracer.name} ({TRACERS}) runs in the program"


def own_code() -> str | None:
    """What of the program's own sees stalls when they have ended; None: nothing."""
    if REGISTRY.interceptors:
        return "on_issue"
    for group in (INTERCEPTORS, REPORTERS):
        for one in REGISTRY.of(group):
            if not one.is_built_in and not one.origin:
                return f"the plugin {one.name} ({group})"
    return None


def make_kept(canary: Canary, native: Native) -> KeptEngine:
    """Not yet started."""
    config = canary.config
    folder = config.store
    assert folder is not None
    place.use(config.flight_dir)
    facts = KeptFacts(config, canary.tracing.facts, canary.no_keeper)
    session_id = facts.session["id"]
    recorder = Recorder(native, config, folder=os.path.join(folder, FLIGHT_FOLDER), session_id=session_id)
    return KeptEngine(
        recorder,
        canary.boundary,
        keeper=None if canary.no_keeper is not None else lambda: _line(folder, facts.key),
        facts=facts.now,
        traced=canary.tracing,
        note=lambda traces, found: _note(recorder, traces, found),
        figures=lambda: _figures(canary, recorder, facts),
        take_over=lambda gives_way: canary.take_over(_why_refused(native), gives_way=gives_way),
        ended=lambda: _end(canary, recorder, facts),
        judges=own_code() is not None,
        tells_end=any(not one.is_built_in for one in REGISTRY.of(REPORTERS)),
    )


def _note(recorder: Recorder, traces: Any, found: Callable[[], object] | None) -> None:
    """Has the traces note what they see beside the flight file."""
    from loopcanary.tracers.notes import Notes

    assert recorder.file is not None
    traces.keep(Notes(recorder.file, lambda: recorder.native.ring_keeper(0.0)), found)


def _why_refused(native: Native) -> str | None:
    """None: there may be a keeper."""
    import errno

    outcome = native.no_keeper()
    if outcome == 0:
        return None
    if outcome == errno.EBUSY:
        return "the keeper hears and does nothing: was it stopped?"
    if outcome == errno.EPERM and (problem := place.no_reaper()) is not None:
        return problem
    if outcome in (errno.EINPROGRESS, errno.EAGAIN):
        return "none of the keepers that were started is heard"
    return f"no keeper can be started: {os.strerror(outcome)}"


def _line(store: str, key: str) -> KeeperLine:
    """What starts the store's keeper, and rings it. OSError where its folder cannot be made."""
    place.prepare(store)
    variables = (f"{name}={value}" for name, value in place.environment().items())
    return (
        tuple(map(os.fsencode, place.command(store))),
        tuple(map(os.fsencode, variables)),
        os.fsencode(place.path(store, place.LOG, key)),
        os.fsencode(place.path(store, place.BELL, key)),
    )


class KeptFacts:
    """What lies beside the evidence: the session, in its form on the wire, and what a keeper has to know."""

    def __init__(self, config: Config, tracers: Callable[[], dict[str, Any]], no_keeper: str | None) -> None:
        """`no_keeper`: why none has to do with it."""
        self._tracers = tracers
        self.session = session_facts(config, engine="native")
        self.key = place.key()
        self._told: dict[str, Any] = {
            "settings": settings_as_environment(config),
            "store": config.store,
            "stderr": console_facts(),
            **({"keeper": self.key} if no_keeper is None else {NO_KEEPER: no_keeper}),
        }
        self._origin: object = None

    def now(self) -> dict[str, Any]:
        """With what is known by now of where the code lies."""
        if (origin := code_origin()) != self._origin:
            self._origin, self._told["code_paths"] = origin, code_paths()
        changes = {"priority_changes": priority_changes} if priority_changes else {}
        return {**self.session, **changes, **self._told, OWN_CODE: own_code(), **self._tracers()}


def _figures(canary: Canary, recorder: Recorder, facts: KeptFacts) -> KeptFigures:
    from loopcanary.assembly.kept_figures import KeptFigures

    return KeptFigures(canary.config, recorder, facts.session)


def _end(canary: Canary, recorder: Recorder, facts: KeptFacts) -> None:
    """Says that there was no stall, or waits a moment for the keeper to have said what there was."""
    _note_answers(recorder, facts)
    noted = canary.tracing.end_noting()
    lanes, stalls = recorder.native.recorded()
    if stalls or noted or recorder.native.calls_slow():
        _wait_for_keeper(canary, recorder, facts)
        return
    if lanes and is_by_hand() and canary.config.console:
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
        if flight is not None and not place.is_heard(place.bell_path(folder or "")):
            canary.boundary.call("keeper", flight.save if is_awaited else flight.settle, keep=True)

    try:
        thread = native.start_thread(keep)
    except OSError:  # no thread may be made: the next that reads the store finds the file where it is
        return
    native.join_thread(thread, END_PATIENCE_S)


def _note_answers(recorder: Recorder, facts: KeptFacts) -> None:
    """Latency of requests is counted in this process alone: its figures go into the facts of the session."""
    if not recorder.native.answers():
        return
    from loopcanary.probes.answers import figures
    from loopcanary.wire import to_wire

    told = [to_wire(one) for one in figures(recorder.native)]
    recorder.set_facts({**facts.now(), "input": told})


def _wait_for_keeper(canary: Canary, recorder: Recorder, facts: KeptFacts) -> None:
    config, native = canary.config, recorder.native
    _, stalls = native.recorded()
    is_told = native.end_with_keeper(END_PATIENCE_S)
    if not is_told and config.fail_on_stall and place.is_heard(place.bell_path(config.store or "")):
        is_told = native.end_with_keeper(_COUNTING_PATIENCE_S - END_PATIENCE_S)
    recorder.stop()
    if not is_told:
        # A keeper that came too late for its word has taken it.
        is_told = not os.path.exists(recorder.file or "") or _take_what_is_left(canary, recorder, facts)
    if config.fail_on_stall and stalls and (not is_told or _has_stored(canary, recorder, facts)):
        native.fail_exit(FAILED_ON_STALL)


def _take_what_is_left(canary: Canary, recorder: Recorder, facts: KeptFacts) -> bool:
    """No keeper has taken it: this process does, where its exit status depends on that, or none will. Whether
    all is stored."""
    import errno

    config = canary.config
    there_is_none = recorder.native.keeper_outcome() not in (0, errno.EINPROGRESS)
    counts = config.fail_on_stall and not place.is_heard(place.bell_path(config.store or ""))
    if canary.no_keeper is None and (there_is_none or counts):
        if there_is_none:
            canary.boundary.tell("no keeper could be started: what stalled is stored now")
        if canary.boundary.call("keeper", _take_in, canary, recorder, facts, keep=True):
            return True
    elif config.console and canary.no_keeper is None:
        canary.boundary.tell("what stalled last is still being stored: `loopcanary report` will have it")
    elif config.console:
        canary.boundary.tell("what stalled is in the flight file still: `loopcanary report` will store it")
    # The first process of a container takes its memory with it.
    _leave(canary, recorder, is_awaited=canary.no_keeper is None and not there_is_none)
    return False


def _take_in(canary: Canary, recorder: Recorder, facts: KeptFacts) -> bool:
    """False: a keeper that was slow to start has it in hand."""
    from loopcanary.assembly.kept_stalls import take_in

    if recorder.place is not None:
        recorder.place.link_again()
    return take_in(canary.config, _figures(canary, recorder, facts).session())


def _has_stored(canary: Canary, recorder: Recorder, facts: KeptFacts) -> bool:
    """Whether a stall of this process is stored; where that cannot be read, one was recorded."""

    def read() -> bool:
        from loopcanary.assembly.kept_stalls import stored

        return bool(stored(canary.config, _figures(canary, recorder, facts).session()))

    return canary.boundary.call("reading", read, keep=True) is not False
