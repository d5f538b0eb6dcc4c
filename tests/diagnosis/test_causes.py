"""Each cause by the stories that lead to it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest
from tests.diagnosis.cases import APP, MS, SESSION, STDLIB, at, evidence, frame, judged, samples, stack

from loopcanary.model import Cause, Collection, GilState, Stack, StallEvidence, StallScope, ThreadStack

SOURCE = """\
import time
def handler():
    time.sleep(0.3)
    select.select([], [], [], 0.3)
    lock.acquire()
    with self._lock:
        json.loads(body)
    socket.getaddrinfo(host, 80)
    os.waitpid(pid, 0)
    file.read()
    total += 1
    import numpy
    re.match(pattern, text)
    cache.get(key)
"""


class Story(NamedTuple):
    title: str
    evidence: StallEvidence
    cause: Cause
    says: str


def at_call(call: str) -> Stack:
    return stack(at(call, SOURCE))


def asleep(call: str, syscall: str | None, **more: object) -> StallEvidence:
    return evidence(samples(*[at_call(call)] * 12, syscall=syscall, **more))


def library(function: str, file: str, *outer: tuple[str, str]) -> Stack:
    frames = [frame(function, file, 10), *(frame(name, place, 20) for name, place in outer)]
    return stack(*frames, at("file.read()", SOURCE))


def moving() -> list[Stack]:
    return [stack(frame("step", APP, line), at("total += 1", SOURCE)) for line in range(2, 14)]


def collection(begin_ms: int, end_ms: int, tid: int = 70) -> Collection:
    return Collection(begin_ns=begin_ms * MS, end_ns=end_ms * MS, tid=tid, generation=2, collected=1234)


HOLDER = Stack(
    frames=(frame("crunch", "/srv/app/jobs.py", 12), frame("Thread.run", f"{STDLIB}/threading.py"))
)

STORIES = [
    Story(
        "a thread in clock_nanosleep sleeps",
        asleep("time.sleep(0.3)", "clock_nanosleep"),
        Cause.SLEEP,
        "12 of 12 samples slept in clock_nanosleep.",
    ),
    Story(
        "a select of no descriptor is a sleep",
        asleep("select.select([], [], [], 0.3)", "pselect6", args=(0, 0, 0)),
        Cause.SLEEP,
        "slept in pselect6",
    ),
    Story(
        "a poll of no descriptor is a sleep",
        asleep("file.read()", "poll", args=(140_000, 0, 300)),
        Cause.SLEEP,
        "slept in poll",
    ),
    Story(
        "a select of descriptors waits for the network",
        asleep("select.select([], [], [], 0.3)", "pselect6", args=(9, 1, 1)),
        Cause.NETWORK_IO,
        "slept in pselect6",
    ),
    Story(
        "without the kernel's view, the text of a sleep tells",
        asleep("time.sleep(0.3)", None, view=False),
        Cause.SLEEP,
        "stood at a call of sleep",
    ),
    Story(
        "a thread that runs is not asleep, whatever the text",
        evidence(samples(*[at_call("time.sleep(0.3)")] * 12, running=True)),
        Cause.NATIVE_CPU,
        "on a CPU",
    ),
    Story(
        "a futex that is not the GIL's is a lock",
        asleep("lock.acquire()", "futex"),
        Cause.LOCK,
        "slept in futex",
    ),
    Story(
        "a futex under `with lock` is a lock though another thread runs Python",
        asleep("self._lock", "futex", gil=GilState.OTHER),
        Cause.LOCK,
        "slept in futex",
    ),
    Story(
        "a futex inside threading.py is a lock",
        evidence(
            samples(
                *[library("Condition.wait", f"{STDLIB}/threading.py")] * 12,
                syscall="futex",
                gil=GilState.OTHER,
            )
        ),
        Cause.LOCK,
        "slept in futex",
    ),
    Story(
        "without the kernel's view, a queue's frame is a lock",
        evidence(samples(*[library("Queue.get", f"{STDLIB}/queue.py")] * 12, view=False)),
        Cause.LOCK,
        "waits for another thread",
    ),
    Story(
        "a futex while another thread holds the GIL is the GIL",
        asleep("json.loads(body)", "futex", gil=GilState.OTHER),
        Cause.GIL,
        "12 of 12 samples waited for the GIL.",
    ),
    Story(
        "a sleep on the GIL's own condition is the GIL, and its holder is named",
        evidence(
            samples(
                *[at_call("lock.acquire()")] * 12,
                syscall="futex",
                gil=GilState.OTHER,
                waits_for_gil=True,
                holder_tid=71,
                holder_stack=HOLDER,
            ),
            threads=(ThreadStack(tid=71, at_ns=0, name="worker-1"),),
        ),
        Cause.GIL,
        "held by worker-1 in crunch (/srv/app/jobs.py:12)",
    ),
    Story(
        "a stopped thread is the host's matter",
        evidence(samples(*[at_call("file.read()")] * 12, state="T")),
        Cause.HOST,
        "stopped by a signal or a tracer",
    ),
    Story(
        "a thread ready to run that gets no CPU time is the host's matter",
        evidence(samples(*moving(), state="R")),
        Cause.HOST,
        "ready to run but given no CPU",
    ),
    Story(
        "most of the time in the run queue is the host's matter",
        evidence(samples(*moving(), running=True, queued=0.7)),
        Cause.HOST,
        "for a CPU",
    ),
    Story(
        "a thread in getaddrinfo resolves, whatever it sleeps in",
        asleep("socket.getaddrinfo(host, 80)", "poll"),
        Cause.DNS,
        "resolving a name, asleep in poll",
    ),
    Story(
        "the standard library's own getaddrinfo resolves too",
        evidence(samples(*[library("getaddrinfo", f"{STDLIB}/socket.py")] * 12, syscall="recvfrom")),
        Cause.DNS,
        "resolving a name",
    ),
    Story(
        "a wait for a child is the child's",
        asleep("os.waitpid(pid, 0)", "wait4"),
        Cause.SUBPROCESS,
        "slept in wait4",
    ),
    Story(
        "reading a child's pipe inside subprocess.py is a wait for the child",
        evidence(
            samples(
                *[
                    library(
                        "select", f"{STDLIB}/selectors.py", ("Popen._communicate", f"{STDLIB}/subprocess.py")
                    )
                ]
                * 12,
                syscall="poll",
            )
        ),
        Cause.SUBPROCESS,
        "slept in poll",
    ),
    Story(
        "importlib inside the callback is an import, and the statement is quoted",
        evidence(
            samples(
                *[
                    stack(
                        frame("FileLoader.get_data", "<frozen importlib._bootstrap_external>", 9),
                        frame("_find_and_load", "<frozen importlib._bootstrap>", 9),
                        at("import numpy", SOURCE),
                    )
                ]
                * 12,
                running=True,
            )
        ),
        Cause.IMPORT,
        "12 of 12 samples were inside `import numpy`.",
    ),
    Story(
        "importlib outside the loop is no import of the callback",
        evidence(
            samples(
                *[
                    Stack(
                        frames=(
                            *stack(at("file.read()", SOURCE)).frames,
                            frame("_f", "<frozen importlib._bootstrap>"),
                        )
                    )
                ]
                * 12,
                syscall="recvfrom",
            )
        ),
        Cause.NETWORK_IO,
        "slept in recvfrom",
    ),
    Story(
        "a read under ssl.py is the network, since OpenSSL reads sockets by read",
        evidence(samples(*[library("SSLSocket.read", f"{STDLIB}/ssl.py")] * 12, syscall="read")),
        Cause.NETWORK_IO,
        "slept in read",
    ),
    Story(
        "a read of the program's own is a file", asleep("file.read()", "read"), Cause.DISK_IO, "slept in read"
    ),
    Story(
        "uninterruptible sleep is the disk",
        evidence(samples(*[at_call("file.read()")] * 12, state="D")),
        Cause.DISK_IO,
        "uninterruptible sleep",
    ),
    Story(
        "running at one position is a C call, and the GIL is told",
        evidence(samples(*[at_call("json.loads(body)")] * 12, running=True, gil=GilState.SELF)),
        Cause.NATIVE_CPU,
        "The call held the GIL in 12 of 12 of them",
    ),
    Story(
        "a C call that released the GIL is told apart",
        evidence(samples(*[at_call("json.loads(body)")] * 12, running=True, gil=GilState.FREE)),
        Cause.NATIVE_CPU,
        "had released the GIL",
    ),
    Story(
        "running at changing positions is Python computing",
        evidence(samples(*moving(), running=True, gil=GilState.SELF)),
        Cause.CPU,
        "12 of 12 samples were on a CPU, at 12 places",
    ),
    Story(
        "without the kernel's view, a moving stack is Python computing",
        evidence(samples(*moving(), view=False)),
        Cause.CPU,
        "found the stack moving",
    ),
    Story(
        "a collection for most of the stall is gc",
        evidence(samples(*moving(), running=True), collections=(collection(10, 110),)),
        Cause.GC,
        "One garbage collection on this thread took 100 ms of 140 ms (oldest generation 2, 1,234 "
        "objects freed).",
    ),
    Story(
        "a collection of another thread is not",
        evidence(samples(*moving(), running=True), collections=(collection(10, 110, tid=99),)),
        Cause.CPU,
        "on a CPU",
    ),
    Story(
        "samples inside a collection are gc without its stamps",
        evidence(samples(*moving(), running=True, in_gc=True)),
        Cause.GC,
        "12 of 12 samples lay inside a garbage collection.",
    ),
    Story(
        "many callbacks in one turn are a burst, whatever they did",
        evidence(
            samples(*moving(), running=True),
            scope=StallScope.TURN,
            turn_callbacks=412,
            turn_callback_ns=130 * MS,
            longest_callback_ns=2 * MS,
        ),
        Cause.BURST,
        "412 callbacks in one turn took 130 ms of 140 ms together; the longest took 2.00 ms.",
    ),
    Story(
        "a turn with one long callback is judged by its samples",
        evidence(
            samples(*moving(), running=True),
            scope=StallScope.TURN,
            turn_callbacks=2,
            turn_callback_ns=130 * MS,
            longest_callback_ns=90 * MS,
        ),
        Cause.CPU,
        "on a CPU",
    ),
    Story(
        "a collection that fills a turn is no burst",
        evidence(
            samples(*moving(), running=True),
            scope=StallScope.TURN,
            turn_callbacks=30,
            turn_callback_ns=130 * MS,
            longest_callback_ns=20 * MS,
            collections=(collection(10, 130),),
        ),
        Cause.GC,
        "took 120 ms of 140 ms",
    ),
    Story(
        "standing still without the kernel's view is unknown",
        evidence(samples(*[at_call("re.match(pattern, text)")] * 12, view=False)),
        Cause.UNKNOWN,
        "the kernel's view of the thread is missing",
    ),
    Story(
        "a system call that tells nothing is named",
        asleep("re.match(pattern, text)", "ioctl"),
        Cause.UNKNOWN,
        "slept in ioctl, which tells no cause",
    ),
    Story("without a sample, it says so", evidence(lasted_ms=300), Cause.UNKNOWN, "no sample was taken: "),
    Story(
        "without a sample, dropped ones are told",
        evidence(lasted_ms=300, samples_dropped=(("moved", 2), ("unreadable", 1))),
        Cause.UNKNOWN,
        "2 taken while the work changed, 1 unreadable",
    ),
    Story(
        "without a sample, a recorded collection is the cause",
        evidence(lasted_ms=300, collections=(collection(10, 250),)),
        Cause.GC,
        "no sample was taken",
    ),
    Story(
        "without a sample, the record of a turn makes a burst",
        evidence(
            lasted_ms=300,
            scope=StallScope.TURN,
            turn_callbacks=412,
            turn_callback_ns=290 * MS,
            longest_callback_ns=2 * MS,
        ),
        Cause.BURST,
        "412 callbacks",
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.title)
def test_cause(story):
    stall = judged(story.evidence, SOURCE)
    assert story.cause is stall.cause, stall.evidence
    assert story.says in " ".join(stall.evidence)
    assert 0.0 <= stall.confidence <= 1.0


def test_the_largest_share_wins_and_a_second_one_is_mentioned():
    mixed = samples(*[at_call("time.sleep(0.3)")] * 8, syscall="clock_nanosleep")
    reading = samples(*[at_call("file.read()")] * 12, syscall="openat")[8:]
    stall = judged(evidence((*mixed, *reading)), SOURCE)
    assert stall.cause is Cause.SLEEP
    assert any(sentence.startswith("Also disk-io: 38 %") for sentence in stall.evidence)


def test_a_cause_of_a_small_share_is_not_mentioned():
    mixed = samples(*[at_call("time.sleep(0.3)")] * 11, syscall="clock_nanosleep")
    reading = samples(*[at_call("file.read()")] * 12, syscall="openat")[11:]
    stall = judged(evidence((*mixed, *reading)), SOURCE)
    assert not any(sentence.startswith("Also") for sentence in stall.evidence)


def test_a_stall_that_an_idle_host_had_seen_too_is_blamed_on_the_code():
    steps = [stack(frame("step", APP, line), at("total += 1", SOURCE)) for line in range(2, 62)]
    stall = judged(evidence(samples(*steps, running=True, queued=0.6)), SOURCE)
    assert stall.cause is Cause.CPU
    assert any(sentence.startswith("Also host: 6") for sentence in stall.evidence)


def test_two_positions_of_a_tight_loop_are_no_c_call():
    # As coin flips fall: runs of one to four, none of five.
    flips = "abaabbabbbabaaabbaabab"
    stacks = {"a": at_call("total += 1"), "b": at_call("file.read()")}
    taken = samples(*[stacks[flip] for flip in flips], running=True, gil=GilState.SELF)
    stall = judged(evidence(taken), SOURCE)
    assert stall.cause is Cause.CPU


def test_a_syscall_number_means_another_call_on_another_machine():
    taken = evidence(samples(*[at_call("re.match(pattern, text)")] * 3, syscall="wait4"))
    # 61 is getdents64 in the generic table.
    stall = judged(taken, SOURCE, session=replace(SESSION, machine="aarch64"))
    assert stall.cause is Cause.DISK_IO
    assert "getdents64" in stall.evidence[0]


def test_samples_without_a_stack_still_tell_by_the_kernel():
    stall = judged(evidence(samples(*[None] * 12, syscall="clock_nanosleep")))
    assert stall.cause is Cause.SLEEP
    assert stall.culprit is None
    assert stall.title == "sleeping in handler"


def test_thin_coverage_is_told_and_lowers_the_confidence():
    taken = samples(at_call("time.sleep(0.3)"), syscall="clock_nanosleep")
    thin = judged(evidence(taken, lasted_ms=1_000), SOURCE)
    assert "The samples cover only 10.0 ms of 1.00 s." in thin.evidence
    assert thin.confidence < judged(evidence(taken), SOURCE).confidence


def test_stalls_by_the_host_have_a_neutral_title():
    steps = [stack(frame("step", APP, line), at("total += 1", SOURCE)) for line in range(2, 62)]
    stall = judged(evidence(samples(*steps, running=True, queued=0.98)), SOURCE)
    assert stall.cause is Cause.HOST, stall.evidence
    assert stall.title == "the host did not run the ready thread"
