from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.building.evidence import bare
from tests.building.issues import INPUT_LAG, JANK, STARTUP
from tests.building.stalls import BEGAN, SESSION, STALL, S, stall

from loopcanary.assembly.store import SETTINGS, Autopsy
from loopcanary.config import settings_as_environment
from loopcanary.flight import hold_lock
from loopcanary.model import (
    Clock,
    Config,
    Fault,
    KilledBy,
    LaneTotals,
    LoopHealth,
    Sample,
    Session,
    SessionEnd,
    Stall,
    StallEvidence,
    StallScope,
    StallState,
)
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.store import FLIGHT_FOLDER, Forensics, Recovery, Store, StoreError, recover, settle
from loopcanary.store.recovery.forensics import credible, credible_lane
from loopcanary.wire import to_wire

ALL = IssueQuery()
CLOCK = Clock(monotonic_ns=0, wall_ns=BEGAN)
LATER = 1e12


class UnreadableError(Exception):
    pass


@dataclass
class Header:
    pid: int = 41
    parent_pid: int = 1
    started_ns: int = 0
    ended_ns: int | None = None
    by_exit: bool = False
    heartbeat_ns: int = 5 * S
    clock: Clock = CLOCK

    faulty: tuple[int, ...] = ()
    """Threads whose faults ended the process."""

    def fault_of(self, tid: int, _since_ns: int) -> Fault | None:
        return Fault(signal="SIGSEGV") if tid in self.faulty else None

    def killed_by(self, since_ns: int) -> KilledBy | None:
        return KilledBy(signal="SIGTERM", reason=f"{since_ns} ns")


@dataclass
class Remains:
    """A flight file as a JSON file: what this part wants of one, and no more."""

    content: dict[str, Any]
    identity: tuple[int, int] | None = None
    header: Header = field(default_factory=Header)

    def facts(self) -> dict[str, Any]:
        return self.content.get("facts", {})

    def lanes(self) -> list[LaneTotals]:
        return []

    def counters(self) -> dict[str, int]:
        return {"samples_taken": 7}

    def stalls(self, *, faults: bool = False) -> list[tuple[int, StallEvidence]]:
        found = [evidence(i + 1, end) for i, end in enumerate(self.content.get("ends", []))]
        if faults:
            in_no_turn = evidence(80, None, scope=StallScope.THREAD)
            found += [replace(in_no_turn, tid=tid) for tid in self.content.get("faults", [])]
        return list(enumerate(found))

    def unslotted_stalls(self) -> list[StallEvidence]:
        return [evidence(90, 2 * S)] if self.content.get("unslotted") else []

    def close(self) -> None:
        pass


def evidence(serial: int, end_ns: int | None, scope: StallScope = StallScope.CALLBACK) -> StallEvidence:
    return bare(serial=serial, scope=scope, tid=1, begin_ns=S, end_ns=end_ns, last_look_ns=9 * S)


def open_remains(path: Path) -> Remains:
    facts = path.lstat()
    try:
        return Remains(json.loads(path.read_text()), (facts.st_dev, facts.st_ino))
    except ValueError as error:
        raise UnreadableError(f"{path.name}: no flight file") from error


def judge(found: StallEvidence, session: Session, clock: Clock, state: StallState) -> Stall:
    end_ns = found.last_look_ns if found.end_ns is None else found.end_ns
    return stall(
        id=f"{session.id}-{found.serial}",
        session=session.id,
        state=state,
        began_wall_ns=clock.to_wall_ns(found.begin_ns),
        duration_ns=end_ns - found.begin_ns,
        killed_by=found.killed_by,
    )


HEALTH = LoopHealth(
    thread="MainThread", kind="asyncio", turns=1, callbacks=1, busy_ns=1, window_ns=1, utilization=1.0,
    delay_p50_ns=0, delay_p99_ns=0, delay_max_ns=0, delay_mean_ns=0,
)  # fmt: skip


def forensics(**changes: Any) -> Forensics:
    plain = Forensics(
        place=lambda *_: Path("/nowhere"),
        open=open_remains,
        is_dead=lambda remains: not remains.content.get("alive"),
        is_kept=lambda _: False,
        hold=hold_lock,
        judge=judge,
        start=lambda *_: None,
        is_wanted=lambda _: True,
        intercept=lambda stall: stall,
        health=lambda *_: (HEALTH,),
        noted=lambda _, session, *__: (session.traces, ()),
        survey=lambda *_: None,
        unreadable=(UnreadableError, OSError),
    )
    return replace(plain, **changes)


@pytest.fixture
def leave(folder: Path) -> Callable[..., Path]:
    """Leaves a flight file in the store's folder."""

    def leave(name: str = "s1.flight", *, in_memory: Path | None = None, **content: Any) -> Path:
        path = folder / FLIGHT_FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content.setdefault("facts", to_wire(replace(SESSION, end=SessionEnd.RUNNING)))
        (in_memory or path).write_text(json.dumps(content))
        if in_memory is not None:
            path.symlink_to(in_memory)
        return path

    return leave


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / FLIGHT_FOLDER).iterdir())


def test_a_dead_process_is_stored_as_killed_and_its_file_removed(
    store: Store, folder: Path, leave: Callable[..., Path]
) -> None:
    leave(ends=[2 * S, None], unslotted=True)
    found = recover(store, forensics())
    assert [one.state for one in found.stalls] == [StallState.ENDED, StallState.KILLED, StallState.ENDED]
    [session] = store.reader.sessions(ALL)
    assert (session.end, session.ended_wall_ns) == (SessionEnd.KILLED, BEGAN + 9 * S)
    assert (session.loops, session.statistics) == ((HEALTH,), {"samples_taken": 7})
    killed = store.reader.issue("s1-2")
    assert killed is not None
    assert (killed.state, killed.duration_ns) == (StallState.KILLED, 8 * S)
    assert [one.killed_by for one in found.stalls] == [None, killed.killed_by, None]
    assert killed.killed_by == KilledBy(signal="SIGTERM", reason=f"{evidence(2, None).begin_ns} ns")
    assert leftovers(folder) == []


def test_of_faults_those_by_which_the_process_ended_are_stored(
    store: Store, leave: Callable[..., Path]
) -> None:
    leave(faults=[7, 8])
    seen: list[StallEvidence] = []

    def see(found: StallEvidence, *rest: Any) -> Stall:
        seen.append(found)
        return judge(found, *rest)

    header = Header(faulty=(8,))
    recover(store, forensics(open=lambda path: replace(open_remains(path), header=header), judge=see))
    assert [(one.tid, one.fault) for one in seen] == [(8, Fault(signal="SIGSEGV"))]
    assert seen[0].killed_by == KilledBy(signal="SIGTERM", reason=f"{seen[0].begin_ns} ns")
    [found] = store.reader.issues(STALLS)
    assert found.state is StallState.CRASHED
    [crashed] = store.reader.sessions(ALL)
    assert crashed.end is SessionEnd.CRASHED
    assert [mark.killed for mark in store.reader.session_marks(ALL)] == [True]


def test_of_what_a_process_noted_only_what_its_settings_want_is_stored(
    store: Store, leave: Callable[..., Path]
) -> None:
    leave()
    noted = forensics(
        noted=lambda _, session, *__: (session.traces, [JANK, INPUT_LAG]),
        start=lambda *_: STARTUP,
        is_wanted=lambda issue: issue is INPUT_LAG,
    )
    found = recover(store, noted)
    assert found.issues == [INPUT_LAG]
    assert store.reader.totals(ALL).issues == 1


@pytest.mark.parametrize(
    ("config", "is_wanted"),
    [
        (Config(), True),
        (Config(ignore=("kind:jank",)), False),
        (Config(ignore=("kind:jank",), delete_ignored=False), True),
        (Config(ignore=("kind:input",)), True),
    ],
    ids=["none is ignored", "it is ignored", "it is ignored and stored", "another is ignored"],
)
def test_what_is_wanted_of_a_dead_process_its_own_settings_say(config: Config, is_wanted: bool) -> None:
    facts = {SETTINGS: settings_as_environment(config)}
    opened: Any = SimpleNamespace(facts=lambda: facts)
    assert Autopsy.of(opened).is_wanted(JANK) is is_wanted


def test_a_process_that_ended_well_but_left_its_file_has_ended(
    store: Store, leave: Callable[..., Path]
) -> None:
    leave(ends=[2 * S])

    def ended(path: Path) -> Remains:
        return replace(open_remains(path), header=Header(ended_ns=30 * S))

    recover(store, forensics(open=ended))
    [session] = store.reader.sessions(ALL)
    assert (session.end, session.ended_wall_ns) == (SessionEnd.EXIT, BEGAN + 30 * S)


def test_a_stall_ends_with_a_process_that_ends_itself(store: Store, leave: Callable[..., Path]) -> None:
    leave(ends=[None])
    recover(store, forensics(open=lambda path: replace(open_remains(path), header=Header(ended_ns=6 * S))))
    [found] = store.reader.issues(STALLS)
    assert (found.state, found.duration_ns) == (StallState.ENDED, 5 * S)


def test_a_link_and_the_file_in_memory_are_both_removed(
    store: Store, folder: Path, tmp_path: Path, leave: Callable[..., Path]
) -> None:
    memory = tmp_path / "shm.flight"
    leave(in_memory=memory, ends=[None])
    recover(store, forensics(place=lambda *_: memory))
    assert store.reader.totals(STALLS).issues == 1
    assert not memory.exists()
    assert leftovers(folder) == []


YEAR = 365 * 86_400 * S


def test_a_damaged_stall_is_not_longer_than_its_process(store: Store, leave: Callable[..., Path]) -> None:
    leave(ends=[2 * S, 242 * YEAR])
    recover(store, forensics())
    assert [one.duration_ns for one in store.reader.issues(STALLS)] == [S]
    [session] = store.reader.sessions(ALL)
    assert session.ended_wall_ns == BEGAN + 5 * S


def test_of_a_damaged_stall_its_samples_are_believed() -> None:
    samples = (Sample(at_ns=3 * S, stack=None), Sample(at_ns=4 * S, stack=None))
    found = credible(Header(), replace(evidence(1, 242 * YEAR), samples=samples))
    assert found is not None
    assert (found.begin_ns, found.end_ns) == (3 * S, 4 * S)


LANE = LaneTotals(
    lane=0, generation=1, tid=1, loop_kind="asyncio", thread_name="MainThread", opened_ns=S, closed_ns=None,
    turns=1, callbacks=1, busy_ns=2 * S, busy_ns_squared=1, longest_turn_ns=2 * S, queue_ns_total=0,
    queue_ns_max=0, histogram=(), stalls=1, stalled_ns=2 * S,
)  # fmt: skip


@pytest.mark.parametrize("name", ["busy_ns", "longest_turn_ns", "queue_ns_max", "stalled_ns", "opened_ns"])
def test_damaged_sums_are_not_longer_than_a_life(name: str) -> None:
    now_wall_ns = BEGAN + 10 * S
    damaged = replace(LANE, **{name: 242 * YEAR})
    assert getattr(credible_lane(Header(), damaged, now_wall_ns), name) == 86_410 * S
    assert credible_lane(Header(), LANE, now_wall_ns) == LANE
    assert credible_lane(Header(started_ns=242 * YEAR), LANE, now_wall_ns) == LANE


@pytest.mark.parametrize(
    ("header", "lasted_s"),
    [(Header(heartbeat_ns=242 * YEAR), 2), (Header(started_ns=242 * YEAR), 5)],
    ids=["last look", "start"],
)
def test_a_damaged_header_hides_no_stall_and_adds_no_time(
    store: Store, leave: Callable[..., Path], header: Header, lasted_s: int
) -> None:
    leave(ends=[2 * S])
    recover(store, forensics(open=lambda path: replace(open_remains(path), header=header)))
    assert store.reader.totals(STALLS).issues == 1
    [session] = store.reader.sessions(ALL)
    assert session.ended_wall_ns == BEGAN + lasted_s * S


def test_recovering_twice_changes_nothing(store: Store, leave: Callable[..., Path]) -> None:
    leave(ends=[2 * S, None])
    recover(store, forensics())
    before = store.reader.issues(STALLS)
    leave(ends=[2 * S, None])
    recover(store, forensics())
    assert store.reader.issues(STALLS) == before


def test_a_running_process_is_read_and_left_and_not_stored(
    store: Store, folder: Path, leave: Callable[..., Path]
) -> None:
    leave(ends=[2 * S, None], alive=True)
    found = recover(store, forensics())
    assert [(one.id, one.state) for one in found.ongoing] == [("s1-2", StallState.ONGOING)]
    assert [(one.end, one.ended_wall_ns) for one in found.running] == [(SessionEnd.RUNNING, None)]
    assert store.reader.totals(STALLS).issues == 0
    assert store.reader.sessions(ALL) == []
    assert leftovers(folder) == ["s1.flight"]


def test_a_process_that_died_early_has_a_name(store: Store, leave: Callable[..., Path]) -> None:
    leave(facts={}, ends=[None])
    [session] = recover(store, forensics()).sessions
    assert (session.name, session.pid) == ("process 41", 41)


def test_what_cannot_be_read_is_set_aside_with_one_message(
    store: Store, folder: Path, leave: Callable[..., Path]
) -> None:
    leave().write_text("garbage")
    found = recover(store, forensics(), now_s=lambda: LATER)
    [name] = leftovers(folder)
    assert name.startswith("s1.flight.unreadable-")
    assert found.notices == [f"s1.flight: no flight file; it was set aside as {name}"]
    assert recover(store, forensics(), now_s=lambda: LATER) == Recovery()


def test_a_file_that_is_being_made_is_left_alone(
    store: Store, folder: Path, leave: Callable[..., Path]
) -> None:
    leave().write_text("")
    assert recover(store, forensics()) == Recovery()
    assert leftovers(folder) == ["s1.flight"]


def test_a_link_to_nowhere_is_left_for_a_month(store: Store, folder: Path) -> None:
    (folder / FLIGHT_FOLDER).mkdir(parents=True)
    (folder / FLIGHT_FOLDER / "gone.flight").symlink_to("/nowhere/at/all")
    assert recover(store, forensics()) == Recovery()
    assert leftovers(folder) == ["gone.flight"]
    recover(store, forensics(), now_s=lambda: LATER)
    assert leftovers(folder) == []


def test_a_link_that_another_recovery_takes_while_we_look(
    store: Store, leave: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "shm.flight"
    link = leave(in_memory=memory)

    def too_late(path: str, **options: int) -> str:
        link.unlink()
        return readlink(path, **options)

    readlink = os.readlink
    monkeypatch.setattr(os, "readlink", too_late)
    assert recover(store, forensics(place=lambda *_: memory)) == Recovery()
    assert memory.exists()


# ---- folders and links that lead elsewhere -------------------------------------------------------------


def test_a_link_to_any_other_place_is_not_followed(
    store: Store, tmp_path: Path, leave: Callable[..., Path]
) -> None:
    memory, other = tmp_path / "shm.flight", tmp_path / "other.flight"
    link = leave(in_memory=other)
    assert recover(store, forensics(place=lambda *_: memory)) == Recovery()
    assert (link.is_symlink(), other.exists()) == (True, True)


def test_a_link_leads_to_any_folder_of_files_in_memory(
    store: Store, tmp_path: Path, leave: Callable[..., Path]
) -> None:
    """The setting `flight_dir` of the program that has made it, which readers need not know."""
    other = tmp_path / "elsewhere" / "shm.flight"
    other.parent.mkdir()
    link = leave(in_memory=other)
    found = recover(store, forensics(place=lambda *_: tmp_path / "shm.flight"))
    assert len(found.sessions) == 1
    assert (link.is_symlink(), other.exists()) == (False, False)


def test_a_links_place_is_asked_by_its_owner_and_name(store: Store, folder: Path) -> None:
    asked = []

    def place(*words: object) -> Path:
        asked.append(words)
        return Path("/nowhere")

    (folder / FLIGHT_FOLDER).mkdir(parents=True)
    for name in ("a.flight", "b.flight.claimed"):
        (folder / FLIGHT_FOLDER / name).symlink_to("/somewhere")
    recover(store, forensics(place=place))
    assert asked == [(os.geteuid(), "a.flight"), (os.geteuid(), "b.flight")]


def test_a_folder_that_is_a_link_is_not_entered(
    store: Store, folder: Path, tmp_path: Path, leave: Callable[..., Path]
) -> None:
    left = leave(ends=[None])
    moved = left.parent.rename(tmp_path / "elsewhere")
    (folder / FLIGHT_FOLDER).symlink_to(moved)
    assert recover(store, forensics(), now_s=lambda: LATER) == Recovery()
    assert (moved / left.name).exists()


@pytest.mark.parametrize("in_memory", [False, True], ids=["a folder", "a link"])
def test_what_is_swapped_for_another_is_not_removed(
    in_memory: bool,
    store: Store,
    tmp_path: Path,
    leave: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a file is put where the one was that has been read, before the store is done."""
    memory = tmp_path / "memory" / "shm.flight"
    memory.parent.mkdir()
    left = leave(in_memory=memory if in_memory else None, ends=[None])
    swapped = memory if in_memory else left
    put = store.put

    def put_late(*what: Any) -> None:
        put(*what)
        swapped.parent.rename(tmp_path / "moved")
        swapped.parent.mkdir()
        swapped.write_text("of another")

    monkeypatch.setattr(store, "put", put_late)
    assert len(recover(store, forensics(place=lambda *_: memory)).stalls) == 1
    assert swapped.read_text() == "of another"


def test_what_is_swapped_before_it_is_read_is_left(store: Store, leave: Callable[..., Path]) -> None:
    left = leave(ends=[None])

    def open_late(path: Path) -> Remains:
        path.rename(path.with_name("aside"))
        leave(ends=[None])
        return open_remains(path)

    assert recover(store, forensics(open=open_late)) == Recovery()
    assert left.exists()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to another user")


@needs_root
@pytest.mark.parametrize("content", ['{"ends": [null]}', "garbage"], ids=["of a dead process", "unreadable"])
def test_root_leaves_the_files_of_another_user(
    content: str, store: Store, folder: Path, leave: Callable[..., Path]
) -> None:
    left = leave()
    left.write_text(content)
    os.chown(left, 65534, 65534)
    found = recover(store, forensics(), now_s=lambda: LATER)
    assert (found.sessions, found.stalls, leftovers(folder)) == ([], [], [left.name])
    assert found.notices == [
        "flight files of killed programs of user 65534 are not stored: run the command as that user"
    ] * (content != "garbage")


@needs_root
def test_root_sees_what_another_users_programs_do(store: Store, leave: Callable[..., Path]) -> None:
    os.chown(leave(ends=[None], alive=True), 65534, 65534)
    found = recover(store, forensics())
    assert (len(found.running), len(found.ongoing), found.notices) == (1, 1, [])


@needs_root
def test_a_link_to_another_users_file_is_not_followed(
    store: Store, tmp_path: Path, leave: Callable[..., Path]
) -> None:
    memory = tmp_path / "shm.flight"
    leave(in_memory=memory, ends=[None])
    os.chown(memory, 65534, 65534)
    assert recover(store, forensics(place=lambda *_: memory)) == Recovery()
    assert memory.exists()


# ---- failures and others at work -----------------------------------------------------------------------


def test_where_the_store_fails_the_file_stays(
    store: Store, folder: Path, leave: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(ends=[None])

    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", fail)
        with pytest.raises(StoreError):
            recover(store, forensics())
    assert leftovers(folder) == ["s1.flight"]
    assert len(recover(store, forensics()).stalls) == 1


def test_stalls_that_the_process_ignores_are_left_out(store: Store, leave: Callable[..., Path]) -> None:
    leave(ends=[2 * S, None])
    found = recover(store, forensics(is_wanted=lambda issue: issue.state is StallState.KILLED))
    assert [stall.state for stall in found.stalls] == [StallState.KILLED]


def test_only_a_dead_owners_claim_is_taken_over(
    store: Store, folder: Path, leave: Callable[..., Path]
) -> None:
    claimed = leave("s1.flight.claimed", ends=[None])
    with hold_lock(claimed) as is_ours:
        assert is_ours
        for name in ("s1.flight.claimed", "s1.flight"):  # as it was called when the folder was listed
            found = recover(store, forensics(), names=[name], patience_s=0)
            assert (found.sessions, found.stalls) == ([], [])
            assert found.notices == [f"{claimed} is being stored by another process: try again later"]
        assert recover(store, forensics(), living=False) == Recovery(), "a start says nothing of it"
    assert len(recover(store, forensics()).stalls) == 1
    assert leftovers(folder) == []


def test_a_keeper_at_work_is_waited_for_not_without_a_limit(store: Store, leave: Callable[..., Path]) -> None:
    leave(ends=[None])
    kept = forensics(is_kept=lambda _: True)
    assert recover(store, kept, living=False) == Recovery(), "a start leaves it to the keeper"
    answers = iter([True, True, False])
    assert recover(store, forensics(is_kept=lambda _: next(answers))).sessions
    leave(ends=[None])
    assert recover(store, kept, patience_s=0).sessions, "a keeper that is stopped"


def test_what_another_process_takes_in_now_is_waited_for(store: Store, leave: Callable[..., Path]) -> None:
    leave(ends=[None])
    answers = iter([False, False, True])
    assert recover(store, forensics(hold=lambda _: nullcontext(next(answers)))).sessions
    assert list(answers) == []


def test_two_recoveries_at_once_store_everything_once(
    make_store: Callable[..., Store], folder: Path, leave: Callable[..., Path]
) -> None:
    for number in range(20):
        facts = to_wire(replace(SESSION, id=f"s{number}"))
        leave(f"s{number}.flight", facts=facts, ends=[None, 2 * S])
    stores = [make_store(), make_store()]
    found: list[Recovery] = []
    threads = [
        threading.Thread(target=lambda store=store: found.append(recover(store, forensics())))
        for store in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(one.sessions) for one in found) == 20
    assert stores[0].reader.totals(STALLS).issues == 40
    assert leftovers(folder) == []


# ---- sessions that left no file ---------------------------------------------------------------------


def test_a_dead_session_ends_with_its_open_stalls(store: Store) -> None:
    running = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None)
    store.put([running], [replace(STALL, state=StallState.ONGOING)])
    assert [one.id for one in settle(store, Recovery(), host="here", is_gone=lambda _: True)] == ["s1"]
    [session] = store.reader.sessions(ALL)
    assert session.end is SessionEnd.KILLED
    assert session.ended_wall_ns == STALL.began_wall_ns + STALL.duration_ns
    [settled] = store.reader.issues(STALLS)
    assert settled.state is StallState.KILLED


@pytest.mark.parametrize(
    ("host", "gone", "seen"),
    [("elsewhere", True, False), ("here", False, False), ("here", True, True)],
    ids=["of another host", "whose process is there", "that recovery has just seen running"],
)
def test_a_session_is_left_running(store: Store, host: str, gone: bool, seen: bool) -> None:
    running = replace(SESSION, end=SessionEnd.RUNNING, ended_wall_ns=None)
    store.put_session(running)
    recovery = Recovery(running=[running] if seen else [])
    assert settle(store, recovery, host=host, is_gone=lambda _: gone) == []
    assert store.reader.sessions(ALL) == [running]


def test_there_is_nothing_to_recover_where_there_is_no_folder(store: Store) -> None:
    assert recover(store, forensics()) == Recovery()
    assert not store.folder.exists()
