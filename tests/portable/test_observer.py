from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
import weakref
from itertools import pairwise
from types import SimpleNamespace

import pytest

from loopcanary.model import GilState, KernelView, StallScope
from loopcanary.portable.clocks import CollectionLog
from loopcanary.portable.stall_watch import Limits
from loopcanary.portable.watchdog import Observer, WatchedLane

MS = 1_000_000
LIMITS = Limits(threshold_ns=100 * MS, delay_ns=20 * MS, interval_ns=10 * MS)


class Machine:
    """CPU clocks as the test says."""

    def __init__(self):
        self.thread_ns = self.process_time_ns = self.own_queue_ns = 0

    def read(self, *_):
        return KernelView(on_cpu_ns=self.thread_ns, run_queue_ns=0)

    def process_ns(self):
        return self.process_time_ns

    def run_queue_ns(self, *_):
        return self.own_queue_ns

    def compute(self, ms, *, in_thread=True):
        self.process_time_ns += ms * MS
        self.thread_ns += ms * MS if in_thread else 0


class Story:
    """One lane under an observer; frames and clocks are scripted."""

    def __init__(self, clock, lane, hangs=None):
        self.clock, self.lane = clock, lane
        self.machine = Machine()
        self.published = []
        self.on_read = lambda: None
        self.frames = {lane.identity.ident: sys._getframe()}
        self.watched = WatchedLane(lane, LIMITS)
        self.observer = Observer(
            clock=clock,
            clocks=self.machine,
            collections=CollectionLog(clock),
            publish=self.published.append,
            frames=self.read_frames,
            hangs=hangs or Left(),
        )

    def read_frames(self):
        self.on_read()
        return self.frames

    def look(self):
        return self.observer.round([self.watched], self.clock())

    def busy(self, ms, every_ms=5):
        """The thread works for `ms`, with a round each `every_ms`."""
        for _ in range(int(ms / every_ms)):
            self.clock.pass_ms(every_ms)
            self.look()

    def end(self):
        self.lane.end(self.clock())
        self.look()
        return self.published[-1]


@pytest.fixture
def story(clock, lane):
    story = Story(clock, lane)
    lane.begin(clock())
    return story


def test_a_stall_has_the_samples_that_were_taken_in_it(story):
    story.busy(150)
    evidence = story.end()
    assert evidence.engine == "portable"
    assert evidence.end_ns - evidence.begin_ns == 150 * MS
    assert [(sample.at_ns - evidence.begin_ns) // MS for sample in evidence.samples] == list(
        range(20, 151, 10)
    )
    assert evidence.samples[0].stack.frames[0].qualname == "Story.__init__"
    assert evidence.samples_dropped == ()
    assert story.observer.counters["stalls"] == 1


def test_a_stall_has_the_last_reading_from_before_it(clock, lane):
    story = Story(clock, lane)
    for _ in range(3):  # idle looks
        story.machine.compute(1)
        story.look()
        clock.pass_ms(20)
    lane.begin(clock())
    story.machine.compute(100)
    story.busy(150)
    evidence = story.end()
    assert (evidence.before.at_ns - evidence.begin_ns) // MS == -20
    assert evidence.before.kernel.on_cpu_ns == 3 * MS


def test_a_stall_before_the_first_look_has_no_baseline(story):
    story.busy(150)
    assert story.end().before is None


def test_a_sample_keeps_no_variable_alive(story):
    class Variable:
        pass

    kept = []

    def sampled():
        variable = Variable()
        kept.append(weakref.ref(variable))
        story.busy(150)

    story.observer._frames = sys._current_frames
    gc.disable()
    try:
        sampled()
        assert kept[0]() is None
    finally:
        gc.enable()
    assert story.end().samples


def test_totals_tell_what_the_threads_clocks_have_gained(clock, lane):
    story = Story(clock, lane)
    story.machine.compute(70)
    assert story.watched.totals(clock(), None).on_cpu_ns is None
    story.observer.acquaint(story.watched)
    story.machine.compute(30)
    story.look()
    totals = story.watched.totals(clock(), 5)
    assert (totals.on_cpu_ns, totals.run_queue_ns, totals.gc_ns) == (30 * MS, 0, 5)


def test_work_that_ends_in_time_is_no_news(story):
    story.busy(90)
    story.lane.end(story.clock())
    story.look()
    assert story.published == []


def test_an_unsampled_stall_is_reported(story, clock):
    clock.pass_ms(500)
    evidence = story.end()
    assert (evidence.samples, evidence.end_ns - evidence.begin_ns) == ((), 500 * MS)
    assert evidence.scope is StallScope.TURN


def test_stalls_that_follow_each_other_are_two(story, clock):
    for ms in (150, 250):
        story.busy(ms)
        story.lane.end(clock())
        story.lane.begin(clock())
    story.busy(5)
    assert [round((e.end_ns - e.begin_ns) / MS) for e in story.published] == [150, 250]
    assert [len(e.samples) for e in story.published] == [14, 24]
    assert [e.serial for e in story.published] == [1, 2]


def test_a_sample_after_the_end_is_dropped_and_counted(story, clock):
    def thread_walks_on():
        story.lane.end(clock())
        story.lane.begin(clock())

    clock.pass_ms(25)
    story.on_read = thread_walks_on
    story.look()
    assert story.observer.counters == {"samples_dropped_moved": 1}


def test_a_thread_without_frames_is_counted_and_reported(story, clock):
    story.frames = {}
    story.busy(150)
    assert story.end().samples_dropped == (("unreadable", 14),)


def test_frames_are_read_before_anything_that_lets_the_gil_go(story, clock):
    order = []
    story.on_read = lambda: order.append("frames")
    story.machine.read = lambda *_: order.append("files")
    clock.pass_ms(25)
    story.look()
    assert order == ["frames", "files"]


def test_an_idle_lane_is_no_reason_to_wake(story, clock):
    assert story.look() == clock() + 20 * MS
    story.lane.end(clock())
    assert story.look() is None


def test_a_call_that_held_the_gil_is_said_to_have_held_it(story, clock):
    story.look()
    begin_ns = clock()
    story.machine.compute(400)
    clock.pass_ms(400)
    story.look()
    evidence = story.end()
    assert [(s.at_ns - begin_ns) // MS for s in evidence.samples] == [20, 400]
    assert {s.gil for s in evidence.samples} == {GilState.SELF}
    assert evidence.samples[0].stack == evidence.samples[1].stack
    assert [s.kernel.on_cpu_ns // MS for s in evidence.samples] == [20, 400]
    assert dict(evidence.samples_dropped) == {"late": 38}


def test_another_gil_holder_is_not_taken_for_this_thread(story, clock):
    story.look()
    story.machine.compute(400, in_thread=False)
    clock.pass_ms(400)
    story.look()
    evidence = story.end()
    assert {(s.gil, s.waits_for_gil) for s in evidence.samples} == {(GilState.OTHER, True)}


def test_time_that_the_host_took_is_no_wait_for_the_gil(story, clock):
    story.look()
    story.machine.compute(400)
    story.machine.own_queue_ns += 390 * MS
    clock.pass_ms(400)
    story.look()
    (sample,) = story.end().samples
    assert sample.gil is GilState.UNKNOWN


def test_a_long_round_of_our_own_is_no_wait_for_the_gil(story, clock):
    read = story.machine.read

    def read_slowly(*arguments):
        clock.pass_ms(60)
        story.machine.compute(60)
        return read(*arguments)

    story.machine.read = read_slowly
    story.busy(100)
    assert {sample.gil for sample in story.end().samples} == {GilState.UNKNOWN}


def test_an_anr_is_published_in_progress_and_at_its_end(story):
    story.busy(5_100, every_ms=10)
    (ongoing,) = story.published
    assert (ongoing.end_ns, ongoing.last_look_ns - ongoing.begin_ns) == (None, 5_000 * MS)
    assert len(ongoing.samples) > 30
    over = story.end()
    assert (over.serial, over.end_ns - over.begin_ns) == (ongoing.serial, 5_100 * MS)
    assert len(story.published) == 2
    assert len(over.samples) < 128


def test_a_hang_has_the_stacks_of_the_other_threads(story):
    ready, done = threading.Event(), threading.Event()

    def other():
        ready.set()
        done.wait()

    threads = [
        threading.Thread(target=other, name="other"),
        threading.Thread(target=other, name="loopcanary-drain"),
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    try:
        frames = sys._current_frames()
        idents = [thread.ident for thread in threads]
        story.frames |= {ident: frames[ident] for ident in idents}
        story.busy(1_100, every_ms=10)
        (stack,) = story.end().threads
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert (stack.name, stack.tid) == ("other", threads[0].native_id)
    assert "other" in [frame.function for frame in stack.stack.frames]


SCENE = contextvars.ContextVar("scene", default=None)


class Handle:
    """Stands in for asyncio's, whose `_run` names the callback that runs."""

    def __init__(self, callback, scene=None):
        self._callback = callback
        self._context = contextvars.copy_context()
        self._context.run(SCENE.set, scene)

    def _run(self):
        return sys._getframe()


@pytest.fixture
def handles(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncio.events", SimpleNamespace(Handle=Handle))


def first():
    """A callback."""


def second():
    """Another."""


@pytest.mark.usefixtures("handles")
def test_a_callback_that_held_most_of_the_turn_is_the_stall(story):
    ident = story.lane.identity.ident
    short, long = Handle(first), Handle(second)
    story.frames = {ident: short._run()}
    story.busy(30)
    story.frames = {ident: long._run()}
    story.busy(120)
    evidence = story.end()
    assert (evidence.scope, evidence.names.name) == (StallScope.CALLBACK, "second")


@pytest.mark.usefixtures("handles")
def test_a_stall_has_the_scene_of_its_callback(story):
    story.observer.scenes = SCENE
    for handle, ms in ((Handle(first, "quick"), 30), (Handle(second, "slow"), 120)):
        story.frames = {story.lane.identity.ident: handle._run()}
        story.busy(ms)
    assert story.end().scene == "slow"


@pytest.mark.usefixtures("handles")
def test_a_sample_has_the_scene_in_which_it_was_taken(story):
    """The kernel is asked afterwards, without the GIL: the thread may be elsewhere by then."""
    story.observer.scenes = SCENE
    handle = Handle(first, "its own")
    read = story.machine.read

    def read_later(*asked):
        handle._context.run(SCENE.set, "the next one's")
        return read(*asked)

    story.frames = {story.lane.identity.ident: handle._run()}
    story.clock.pass_ms(30)
    story.machine.read = read_later
    story.look()
    story.clock.pass_ms(90)
    assert story.end().scene == "its own"


@pytest.mark.parametrize(("kind", "scene"), [("asyncio", None), ("thread", "GET /")])
def test_what_was_not_sampled_has_only_its_threads_scene(clock, lane, kind, scene):
    """On a loop the last scene that was entered may be another callback's."""
    story = Story(clock, lane)
    lane.identity = lane.identity._replace(loop_kind=kind)
    lane.begin(clock())
    lane.scene = "GET /"
    clock.pass_ms(150)
    evidence = story.end()
    assert (evidence.samples, evidence.scene) == ((), scene)


@pytest.mark.usefixtures("handles")
def test_many_callbacks_none_of_which_held_most_are_a_burst(story):
    handles = [Handle(first) for _ in range(15)]
    for handle in handles:
        story.frames = {story.lane.identity.ident: handle._run()}
        story.busy(10)
    evidence = story.end()
    assert (evidence.scope, evidence.names) == (StallScope.TURN, None)
    assert evidence.turn_callbacks >= 14
    assert evidence.turn_callback_ns == 150 * MS
    assert 2 * evidence.longest_callback_ns < 150 * MS


@pytest.mark.usefixtures("handles")
def test_nothing_of_the_program_is_kept_alive(story, clock):
    import gc
    import weakref

    class Callback:
        def __call__(self):
            """Called by nobody."""

    handle = Handle(Callback())
    story.frames = {story.lane.identity.ident: handle._run()}
    story.busy(50)
    gone = weakref.ref(handle._callback)
    story.frames = {}
    del handle
    gc.collect()
    assert gone() is None


class Left:
    """What a HangFile is told."""

    def __init__(self):
        self.notes = []

    def note(self, evidence):
        self.notes.append(evidence)


@pytest.fixture
def left():
    return Left()


@pytest.fixture
def hanging(clock, lane, left):
    """In work that began just now, beside another thread; hangs are left behind."""
    story = Story(clock, lane, left)
    story.frames[-1] = sys._getframe()
    lane.begin(clock())
    return story


def lengths_ms(notes):
    return [(one.last_look_ns - one.begin_ns) // MS for one in notes]


def test_a_hang_is_left_behind_from_a_second_on_with_all_threads(hanging, left):
    hanging.busy(990)
    assert left.notes == []
    hanging.busy(20)
    (note,) = left.notes
    assert (lengths_ms([note]), note.end_ns) == ([1_000], None)
    assert len(note.threads) == 1
    assert note.samples[-1].at_ns == note.last_look_ns


def test_it_is_left_anew_as_it_grows_by_a_tenth_or_half_a_second(hanging, left):
    hanging.busy(20_000)
    lengths = lengths_ms(left.notes)
    assert lengths[:3] == pytest.approx([1_000, 1_500, 2_000], abs=50)
    assert all(b - a >= 500 and (b - a) >= b // 10 for a, b in pairwise(lengths))
    assert 20_000 - lengths[-1] <= 20_000 // 10 + 200
    assert len(lengths) < 30


def test_what_was_granted_is_no_hang(hanging, left):
    hanging.lane.allow(3_000 * MS)
    hanging.busy(2_900)
    assert left.notes == []
    hanging.busy(200)
    assert len(left.notes) == 1


def test_its_end_and_its_anr_have_the_serial_that_was_left(hanging, left):
    hanging.busy(5_100)
    ended = hanging.end()
    assert [one.serial for one in left.notes] == [ended.serial] * len(left.notes)
    assert [one.serial for one in hanging.published] == [ended.serial] * 2
    assert left.notes[-1] is ended


def test_without_a_sample_a_hang_is_left_with_its_length(hanging, left):
    hanging.frames.clear()
    hanging.busy(1_010)
    assert (lengths_ms(left.notes), left.notes[0].samples) == ([1_000], ())


def test_the_first_of_the_other_tasks_are_left_by_name(clock, lane):
    """All that are not done, by the length of their names first; they are asked for once."""
    loop, found = asyncio.new_event_loop(), Left()

    async def wait():
        await asyncio.sleep(0)

    async def hang():
        others = [asyncio.ensure_future(wait()) for _ in range(20)]
        for number, task in enumerate(others):
            task.set_name(f"wait-{number}")
        lane.begin(clock())
        threading.Thread(target=look).start()
        done.wait()
        for task in others:
            await task

    def look():
        story = Story(clock, lane, found)
        story.watched.follow(loop)
        story.busy(1_500)
        done.set()

    done = threading.Event()
    loop.run_until_complete(hang())
    loop.close()
    assert found.notes[-1].tasks == tuple(f"wait-{number}" for number in range(16))
    assert found.notes[-1].task_count == 20


def test_a_loop_that_has_no_tasks_has_no_names(hanging, left):
    hanging.busy(1_010)
    assert (left.notes[0].tasks, left.notes[0].task_count) == ((), 0)
