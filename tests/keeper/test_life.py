"""What a keeper does with the flight file of a living program: by hand, with a clock that the test turns."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.building.evidence import BEGIN, MS, going_on, stall
from tests.building.flight_file import FlightBuilder
from tests.building.stalls import running

from loopcanary import keeper as place
from loopcanary.assembly.keeper.plugins import Plugins
from loopcanary.assembly.keeper.program import KEEPER, FlightLife
from loopcanary.assembly.keeper.stations import KeptStations
from loopcanary.assembly.store import open_store
from loopcanary.config import settings_as_environment
from loopcanary.engine.threads import PythonThread
from loopcanary.flight import FlightFile, hold_lock
from loopcanary.flight import format as layout
from loopcanary.flight.format import ProcessState, SectionKind, SlotState, TakenBy
from loopcanary.model import Config, Issue, SessionEnd, Stall, StallEvidence, StallState
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.notifications.notifier import Notifier
from loopcanary.registry import REGISTRY, REPORTERS, Registration
from loopcanary.store import Store, StoreError
from loopcanary.wire import to_wire

pytestmark = pytest.mark.native
S = 1_000 * MS
SESSION = running(host="box", python="CPython 3.11", started_wall_ns=5)


class Program:
    """A flight file that the test writes as its process would, and a keeper's view of it."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store"
        self.path = folder / "41.flight"
        self.complaints: list[str] = []
        self.plugins = Plugins(self.complaints.append)
        self.interceptors: list[Callable[[Issue], Issue | None]] = []
        self.removed = 0
        self.counts: Counter[str] = Counter()
        self.settings: dict[str, Any] = {"console": True}
        self.facts: dict[str, Any] = {}
        self._life: FlightLife | None = None
        self._opened: list[Store] = []
        # Now: what is long past is swept.
        self.builder = FlightBuilder(takes=TakenBy.KEEPER, slot_room=16, anchor_wall_ns=time.time_ns())

    def write(self) -> None:
        config = Config(store=self.store, **self.settings)
        facts = {
            **to_wire(SESSION),
            "settings": settings_as_environment(config),
            "stderr": {"speaks": True, "by_hand": True},
            KEEPER: place.key(),
            **self.facts,
        }
        self.builder.put_facts(json.dumps(facts).encode())
        kept = self.keeper_section() if self.path.exists() else b""
        at = self.builder.at(SectionKind.KEEPER)
        if kept:
            self.builder.data[at : at + len(kept)] = kept
        self.builder.write(self.path)

    def keeper_section(self) -> bytes:
        at = self.builder.at(SectionKind.KEEPER)
        return self.path.read_bytes()[at : at + layout.KEEPER_BYTES]

    @property
    def words(self) -> dict[str, Any]:
        return layout.KEEPER.read(self.keeper_section())

    def taken(self, slot: int) -> int:
        return struct.unpack_from("<Q", self.words["taken"], 8 * slot)[0]

    def texts(self, now_ns: int) -> list[str]:
        """What the program would write to its stderr until nothing more comes."""
        found = []
        while self.words["text_number"] != len(found) + self.written:
            words = self.words
            found.append(words["text"][: words["text_bytes"]].decode())
            self.builder.put_header(text_written=words["text_number"])
            self.write()
            self.look(now_ns)
        self.written += len(found)
        return found

    written = 0

    @property
    def life(self) -> FlightLife:
        if self._life is None:
            self._life = FlightLife(FlightFile.open(self.path), self._stations, self._remove)
        return self._life

    def look(self, now_ns: int) -> int | None:
        return self.life.look(now_ns)

    def next_keeper(self) -> None:
        """The one before was killed."""
        self.close()

    def close(self) -> None:
        if self._life is not None:
            self._life.close()
            self._life = None
        while self._opened:
            self._opened.pop().close()

    def stored(self) -> list[Stall]:
        opened = open_store(self.store)
        try:
            return [one for one in opened.reader.issues(STALLS) if isinstance(one, Stall)]
        finally:
            opened.close()

    def _stations(
        self, file: FlightFile, facts: dict[str, Any], header: Any, pid: int | None
    ) -> KeptStations:
        return KeptStations(
            file,
            facts,
            header,
            pid,
            store_for=self._store_for,
            interceptors=self.interceptors,
            plugins=self.plugins,
            complain=self.complaints.append,
            counts=self.counts,
            notifier=Notifier(self.store, set, PythonThread),
        )

    def _store_for(self, config: Config) -> Store:
        self._opened.append(open_store(self.store, config))
        return self._opened[-1]

    def _remove(self) -> None:
        self.removed += 1


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    made.close()


NOW = BEGIN + 10 * S


def add(program: Program, evidence: StallEvidence) -> int:
    slot = program.builder.add_stall(evidence)
    program.write()
    return slot


def test_an_ended_stall_is_stored_and_its_slot_given_back(program: Program):
    add(program, stall(serial=7))
    assert program.look(NOW) is None
    [found] = program.stored()
    assert (found.id, found.state, found.duration_ns) == ("s1-7", StallState.ENDED, 250 * MS)
    assert program.taken(0) == 7
    assert program.words["beat_ns"] == NOW
    [text] = program.texts(NOW)
    assert text.startswith("[loopcanary] stall 250 ms, ")
    assert (program.complaints, program.counts["stalls"]) == ([], 1)


def test_nothing_is_taken_where_the_program_takes_it_itself(program: Program):
    program.builder.put_header(takes=TakenBy.DRAIN)
    add(program, stall(serial=7))
    assert program.look(NOW) is None
    assert (program.stored(), program.taken(0), program.words["pid"]) == ([], 0, 0)


def test_the_program_of_another_keeper_is_left_alone(program: Program):
    program.facts = {KEEPER: "0badcafe"}
    add(program, stall(serial=7))
    assert program.look(NOW) is None
    assert (program.stored(), program.taken(0), program.words["pid"]) == ([], 0, 0)


def test_a_program_that_has_not_said_who_it_is_is_waited_for(program: Program):
    program.builder.add_stall(stall(serial=7))
    program.builder.write(program.path)
    started_ns = 1_000
    due_ns = program.look(started_ns + MS)
    assert due_ns is not None
    assert program.taken(0) == 0
    program.write()
    program.look(due_ns)
    assert [one.id for one in program.stored()] == ["s1-7"]


def test_a_hang_is_reported_at_each_stage_and_its_end(program: Program):
    evidence = going_on(serial=9)
    slot = add(program, evidence)
    begin, told = evidence.begin_ns, []
    now = begin + 300 * MS
    while (due_ns := program.look(now)) is not None:
        told.append([text.splitlines()[0] for text in program.texts(now)])
        now = due_ns
    told.append([text.splitlines()[0] for text in program.texts(now)])
    assert now == begin + 300 * S
    assert told[0] == []
    assert [len(one) for one in told[1:]] == [1] * 4
    assert told[1][0].startswith("[loopcanary] hang 1.00 s and still in progress, ")
    assert told[2][0].startswith("[loopcanary] still in progress after 5.00 s: ")
    assert [one.state for one in program.stored()] == [StallState.ONGOING]
    program.builder.put_header(heartbeat_ns=begin + 301 * S)
    program.builder.put_slot(slot, state=SlotState.ENDED, end_ns=begin + 301 * S)
    program.write()
    program.look(begin + 302 * S)
    [over] = program.texts(begin + 302 * S)
    assert over.startswith("[loopcanary] ended after 5 m 1 s: ")
    assert [one.state for one in program.stored()] == [StallState.ENDED]


def test_the_next_keeper_tells_no_hang_again(program: Program):
    evidence = going_on(serial=9)
    add(program, evidence)
    program.look(evidence.begin_ns + 2 * S)
    assert len(program.texts(evidence.begin_ns + 2 * S)) == 1
    program.next_keeper()
    assert program.look(evidence.begin_ns + 3 * S) == evidence.begin_ns + 5 * S
    assert program.texts(evidence.begin_ns + 3 * S) == []
    program.look(evidence.begin_ns + 5 * S)
    assert len(program.texts(evidence.begin_ns + 5 * S)) == 1


def test_what_the_next_keeper_finds_counts_as_reported(program: Program):
    for serial in (1, 2):
        add(program, stall(serial=serial))
    program.look(NOW)
    program.texts(NOW)
    program.next_keeper()
    add(program, stall(serial=3))
    program.look(NOW)
    [again] = program.texts(NOW)
    assert again.startswith("[loopcanary] again: ")
    assert "(3 stalls, " in again


def test_the_settings_of_the_program_are_followed(program: Program):
    program.settings = {"console": False, "ignore": ("*/größe.py",)}
    add(program, stall(serial=1))
    program.look(NOW)
    assert (program.stored(), program.taken(0), program.words["text_number"]) == ([], 1, 0)


def test_interceptors_may_drop_and_change(program: Program):
    def drops_one(issue: Issue) -> Issue | None:
        return None if issue.id == "s1-1" else replace(issue, scene="seen")  # type: ignore[return-value]

    program.interceptors.append(drops_one)
    for serial in (1, 2):
        add(program, stall(serial=serial))
    program.look(NOW)
    assert [(one.id, one.scene) for one in program.stored()] == [("s1-2", "seen")]
    assert (program.taken(0), program.taken(1)) == (1, 2)


def test_a_store_that_fails_keeps_slots_and_is_said_once(
    program: Program, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    add(program, stall(serial=1))
    with monkeypatch.context() as broken:

        def full(*_: object) -> None:
            raise StoreError("the disk is full")

        broken.setattr("loopcanary.store.Store.put", full)
        due_ns = program.look(NOW)
        assert due_ns == NOW + S
        assert len(program.texts(NOW)) == 1
        assert program.look(due_ns) == due_ns + 2 * S
    assert (program.taken(0), len(caplog.messages)) == (0, 1)
    assert program.look(due_ns + 2 * S) is None
    assert [one.id for one in program.stored()] == ["s1-1"]
    assert (program.taken(0), program.texts(NOW)) == (1, [])


def test_texts_wait_until_the_one_before_is_written(program: Program):
    evidence = going_on(serial=9)
    slot = add(program, evidence)
    now = evidence.begin_ns + 2 * S
    program.look(now)
    program.builder.put_slot(slot, state=SlotState.ENDED, end_ns=now)
    program.write()
    due_ns = program.look(now)
    assert due_ns is not None
    assert (program.words["text_number"], program.taken(slot)) == (1, 9)
    later_ns = program.look(due_ns)
    assert later_ns is not None
    assert later_ns - due_ns > due_ns - now > 0
    assert [text.split()[1] for text in program.texts(later_ns)] == ["hang", "ended"]


def end(program: Program, at_ns: int) -> None:
    program.builder.put_header(state=ProcessState.ENDED, ended_ns=at_ns)
    program.write()


def test_the_end_of_a_program_is_stored_and_summed_up(program: Program):
    add(program, stall(serial=1))
    program.look(NOW)
    program.texts(NOW)
    add(program, stall(serial=2))
    end(program, NOW)
    assert program.look(NOW) is None
    assert program.removed == 1
    summary = program.texts(NOW)[-1]
    assert summary.startswith("[loopcanary] 2 stalls in 1 bug")
    assert (program.life.has_more, program.words["closed"]) == (False, 1)
    opened = open_store(program.store)
    [session] = opened.reader.sessions(IssueQuery())
    opened.close()
    assert (session.end, session.statistics["stalls_reported"]) == (SessionEnd.EXIT, 2)


def test_a_program_that_writes_nothing_is_not_waited_for_forever(program: Program):
    add(program, stall(serial=1))
    end(program, NOW)
    now = NOW
    while (due_ns := program.look(now)) is not None:
        assert due_ns > now
        now = due_ns
    assert now - NOW < 3 * S
    assert program.words["closed"] == 1


def test_a_stall_in_which_the_program_ended_well_ended_with_it(program: Program):
    evidence = going_on(serial=9)
    add(program, evidence)
    end(program, evidence.begin_ns + 2 * S)
    program.look(evidence.begin_ns + 2 * S)
    [found] = program.stored()
    assert (found.state, found.duration_ns) == (StallState.ENDED, 2 * S)


def test_a_program_that_ended_unseen_is_taken_by_what_is_known(program: Program):
    add(program, stall(serial=1))
    program.look(NOW)
    add(program, stall(serial=2))
    end(program, NOW)
    program.life.finish(NOW)
    assert (len(program.stored()), program.removed) == (2, 1)


@pytest.mark.parametrize("how", [end, lambda *_: None], ids=["ended", "killed"])
def test_the_log_file_has_what_ended_before_a_keeper_came(program: Program, tmp_path: Path, how: Any):
    program.settings["log_file"] = tmp_path / "log"
    add(program, stall(serial=1))
    how(program, NOW)
    program.life.finish(NOW)
    assert (tmp_path / "log").read_text().count("s1-1") == 1
    assert len(program.stored()) == 1


def test_root_does_what_no_program_says_that_it_has_not_served(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may have changed its user, and have written that afterwards."""
    monkeypatch.setattr("loopcanary.assembly.keeper.program._IS_ROOT", True)
    program.settings["log_file"] = tmp_path / "log"
    add(program, stall(serial=1))
    end(program, NOW)
    program.life.finish(NOW)
    assert (program.stored(), program.removed, (tmp_path / "log").exists()) == ([], 0, False)


def test_root_does_what_one_says_that_it_has_seen(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("loopcanary.assembly.keeper.program._IS_ROOT", True)
    program.settings["log_file"] = tmp_path / "log"
    add(program, stall(serial=1))
    program.look(NOW)
    add(program, stall(serial=2))
    program.life.finish(NOW)
    assert (tmp_path / "log").read_text().count("s1-2") == 1


def test_what_ended_unseen_is_taken_in_by_one_process(program: Program):
    def is_refused_to_others(issue: Issue) -> Issue:
        with hold_lock(program.path) as is_free:
            told.append(is_free)
        return issue

    told: list[bool] = []
    program.interceptors.append(is_refused_to_others)
    add(program, stall(serial=1))
    end(program, NOW)
    with hold_lock(program.path):
        program.life.finish(NOW)
    assert (program.stored(), program.removed, told) == ([], 0, [])
    program.life.finish(NOW)
    assert (len(program.stored()), program.removed, told) == (1, 1, [False])


@pytest.mark.parametrize("where", ["make", "report", "close", "counts"])
def test_a_reporter_that_hangs_is_given_up_for_all_programs(
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    where: str,
):
    over, hangs = threading.Event(), threading.Event()

    def join(thread: PythonThread, timeout_s: float) -> bool:
        """It is given up when it hangs, and not where a busy host runs it late."""
        while not hangs.is_set() and thread._thread.is_alive():
            thread._thread.join(timeout_s)
        return not thread._thread.is_alive()

    class Reporter:
        name = "mine"

        def __init__(self, run: Any) -> None:
            del run
            self.hang("make")

        def hang(self, here: str, *_: Any) -> None:
            if here == where:
                hangs.set()
                over.wait()

        def __getattr__(self, here: str) -> Any:
            return partial(self.hang, here)

    monkeypatch.setattr("loopcanary.engine.apart.PATIENCE_S", 0.1)
    monkeypatch.setattr(PythonThread, "join", join)
    monkeypatch.setitem(REGISTRY._own, (REPORTERS, "mine"), Registration(REPORTERS, "mine", Reporter))
    (tmp_path / "other").mkdir()
    programs = [program, Program(tmp_path / "other")]
    programs[1].plugins = program.plugins
    for number, one in enumerate(programs):
        add(one, stall(serial=number))
        end(one, NOW)
        one.look(NOW)
        one.close()
    over.set()
    assert caplog.text.count("it has not returned after") == 1
    assert [one.removed for one in programs] == [1, 1]


def test_an_interceptor_that_hangs_is_given_up():
    over, plugins = threading.Event(), Plugins(lambda _: None)

    def waits(_: Any) -> Any:
        over.wait()

    bounded = plugins.interceptor(waits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("loopcanary.engine.apart.PATIENCE_S", 0.1)
        for why in ("it has not returned", "it did not return before"):
            with pytest.raises(TimeoutError, match=why):
                bounded(None)  # type: ignore[arg-type]
    over.set()
