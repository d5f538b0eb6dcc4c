"""Each cause by the stories that lead to it."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from tests.diagnosis.cases import (
    APP,
    MS,
    SESSION,
    SITE,
    STDLIB,
    at,
    evidence,
    frame,
    judged,
    kernel,
    samples,
    stack,
)

from loopcanary.diagnosis.causes.verdict import Finding, judge
from loopcanary.model import (
    CallbackNames,
    Cause,
    Collection,
    Contributor,
    Doing,
    Frame,
    GilState,
    Grade,
    HostReading,
    LockProof,
    LockView,
    PriorityChange,
    Sample,
    Scheduler,
    Stack,
    Stall,
    StallEvidence,
    StallScope,
    Target,
    TargetKind,
    ThreadReading,
    ThreadStack,
)
from loopcanary.source_text import SourceLines

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


def twelve(here: Stack | str | None, syscall: str | None = None, **how: object) -> StallEvidence:
    """A stall of twelve samples of one stack, or of one call in SOURCE."""
    stacks = [at_call(here) if isinstance(here, str) else here] * 12
    return evidence(samples(*stacks, syscall=syscall, **how))


def turn(callbacks: int, took_ms: int, longest_ms: int) -> dict[str, Any]:
    """A turn of several callbacks, as fields of its evidence."""
    return {
        "scope": StallScope.TURN,
        "turn_callbacks": callbacks,
        "turn_callback_ns": took_ms * MS,
        "longest_callback_ns": longest_ms * MS,
    }


def machine(until_ms: int, busy_ms: int, **more: Any) -> dict[str, Any]:
    """Readings of a machine with two cores, as a field of the evidence."""
    first = HostReading(at_ns=0, system_busy_ns=0, system_total_ns=0, system_stolen_ns=0)
    last = {"system_busy_ns": busy_ms * MS, "system_total_ns": 2 * until_ms * MS, **more}
    return {"host": (first, HostReading(at_ns=until_ms * MS, **last))}


def library(function: str, file: str, *outer: tuple[str, str]) -> Stack:
    frames = [frame(function, file, 10), *(frame(name, place, 20) for name, place in outer)]
    return stack(*frames, at("file.read()", SOURCE))


def moving(count: int = 12) -> list[Stack]:
    """Stacks of Python that computes: each at a line of its own."""
    return [stack(frame("step", APP, 2 + line), at("total += 1", SOURCE)) for line in range(count)]


def collection(begin_ms: int, end_ms: int, tid: int = 70) -> Collection:
    return Collection(begin_ns=begin_ms * MS, end_ns=end_ms * MS, tid=tid, generation=2, collected=1234)


HOLDER = Stack(
    frames=(frame("crunch", "/srv/app/jobs.py", 12), frame("Thread.run", f"{STDLIB}/threading.py"))
)

STORIES = [
    Story(
        "a thread in clock_nanosleep sleeps",
        twelve("time.sleep(0.3)", "clock_nanosleep"),
        Cause.SLEEP,
        "12 of 12 samples slept in clock_nanosleep.",
    ),
    Story(
        "a select of no descriptor is a sleep",
        twelve("select.select([], [], [], 0.3)", "pselect6", args=(0, 0, 0)),
        Cause.SLEEP,
        "slept in pselect6",
    ),
    Story(
        "a poll of no descriptor is a sleep",
        twelve("file.read()", "poll", args=(140_000, 0, 300)),
        Cause.SLEEP,
        "slept in poll",
    ),
    Story(
        "a select of descriptors waits for the network",
        twelve("select.select([], [], [], 0.3)", "pselect6", args=(9, 1, 1)),
        Cause.NETWORK_IO,
        "slept in pselect6",
    ),
    Story(
        "without the kernel's view, the text of a sleep tells",
        twelve("time.sleep(0.3)", None, view=False),
        Cause.SLEEP,
        "were at a call of sleep",
    ),
    Story(
        "a thread that runs is not asleep, whatever the text",
        twelve("time.sleep(0.3)", running=True),
        Cause.NATIVE_CPU,
        "on a CPU",
    ),
    Story(
        "a futex that is not the GIL's is a lock",
        twelve("lock.acquire()", "futex"),
        Cause.LOCK,
        "slept in futex",
    ),
    Story(
        "fcntl that waits for a lock of a file is a lock",
        twelve("file.read()", "fcntl", args=(9, 7, 1)),
        Cause.LOCK,
        "slept in fcntl",
    ),
    Story(
        "so is fcntl that waits for a lock of an open file",
        twelve("file.read()", "fcntl", args=(9, 38, 1)),
        Cause.LOCK,
        "slept in fcntl",
    ),
    Story(
        "fcntl of another command tells no cause",
        twelve("file.read()", "fcntl", args=(9, 1030, 1)),
        Cause.UNKNOWN,
        "slept in fcntl",
    ),
    Story(
        "a futex under `with lock` is a lock though another thread runs Python",
        twelve("self._lock", "futex", gil=GilState.OTHER),
        Cause.LOCK,
        "slept in futex",
    ),
    Story(
        "a futex inside threading.py is a lock",
        twelve(library("Condition.wait", f"{STDLIB}/threading.py"), "futex", gil=GilState.OTHER),
        Cause.LOCK,
        "slept in futex",
    ),
    Story(
        "without the kernel's view, a queue's frame is a lock",
        twelve(library("Queue.get", f"{STDLIB}/queue.py"), view=False),
        Cause.LOCK,
        "waits for another thread",
    ),
    Story(
        "a futex while another thread holds the GIL is the GIL",
        twelve("json.loads(body)", "futex", gil=GilState.OTHER),
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
        "held by worker-1 in crunch (jobs.py:12)",
    ),
    Story(
        "a stopped thread is the host's matter",
        twelve("file.read()", state="T"),
        Cause.HOST,
        "stopped by a signal or a tracer",
    ),
    Story(
        "a thread ready to run that gets no CPU time is the host's matter",
        evidence(samples(*moving(), state="R")),
        Cause.HOST,
        "runnable, but given no CPU",
    ),
    Story(
        "most of the time in the run queue is the host's matter",
        evidence(samples(*moving(), running=True, queued=0.7)),
        Cause.HOST,
        "for a CPU",
    ),
    Story(
        "a thread in getaddrinfo resolves, whatever it sleeps in",
        twelve("socket.getaddrinfo(host, 80)", "poll"),
        Cause.DNS,
        "resolving a name, asleep in poll",
    ),
    Story(
        "the standard library's own getaddrinfo resolves too",
        twelve(library("getaddrinfo", f"{STDLIB}/socket.py"), "recvfrom"),
        Cause.DNS,
        "resolving a name",
    ),
    Story(
        "dnspython resolves, however deep it waits",
        twelve(
            library(
                "_wait_for",
                "/usr/lib/python3/dist-packages/dns/query.py",
                ("resolve", "/usr/lib/python3/dist-packages/dns/resolver.py"),
            ),
            "poll",
        ),
        Cause.DNS,
        "resolving a name, asleep in poll",
    ),
    Story(
        "a wait for a child is the child's",
        twelve("os.waitpid(pid, 0)", "wait4"),
        Cause.SUBPROCESS,
        "slept in wait4",
    ),
    Story(
        "reading a child's pipe inside subprocess.py is a wait for the child",
        twelve(
            library("select", f"{STDLIB}/selectors.py", ("Popen._communicate", f"{STDLIB}/subprocess.py")),
            "poll",
        ),
        Cause.SUBPROCESS,
        "slept in poll",
    ),
    Story(
        "importlib inside the callback is an import, and the statement is quoted",
        twelve(
            stack(
                frame("FileLoader.get_data", "<frozen importlib._bootstrap_external>", 9),
                frame("_find_and_load", "<frozen importlib._bootstrap>", 9),
                at("import numpy", SOURCE),
            ),
            running=True,
        ),
        Cause.IMPORT,
        "12 of 12 samples were inside `import numpy`.",
    ),
    Story(
        "importlib outside the loop is no import of the callback",
        twelve(
            Stack(
                frames=(
                    *stack(at("file.read()", SOURCE)).frames,
                    frame("_f", "<frozen importlib._bootstrap>"),
                )
            ),
            syscall="recvfrom",
        ),
        Cause.NETWORK_IO,
        "slept in recvfrom",
    ),
    Story(
        "a read under ssl.py is the network, since OpenSSL reads sockets by read",
        twelve(library("SSLSocket.read", f"{STDLIB}/ssl.py"), "read"),
        Cause.NETWORK_IO,
        "slept in read",
    ),
    Story(
        "a read of the program's own is a file", twelve("file.read()", "read"), Cause.DISK_IO, "slept in read"
    ),
    Story(
        "uninterruptible sleep is the disk",
        twelve("file.read()", state="D"),
        Cause.DISK_IO,
        "uninterruptible sleep",
    ),
    Story(
        "running at one position is a C call, and the GIL is told",
        twelve("json.loads(body)", running=True, gil=GilState.SELF),
        Cause.NATIVE_CPU,
        "The call held the GIL in 12 of 12 of them",
    ),
    Story(
        "a C call that released the GIL is told apart",
        twelve("json.loads(body)", running=True, gil=GilState.FREE),
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
        "found another stack than the sample before",
    ),
    Story(
        "a collection for most of the stall is gc",
        evidence(samples(*moving(), running=True), collections=(collection(10, 110),)),
        Cause.GC,
        "1 garbage collection on this thread took 100 ms of 140 ms (oldest generation 2, 1,234 "
        "objects freed).",
    ),
    Story(
        "collections that were pushed out by later ones are gc too",
        evidence(
            tuple(
                replace(sample, gc_total_ns=index * 9 * MS)
                for index, sample in enumerate(samples(*moving(), running=True, in_gc=True))
            ),
            collections=(collection(118, 120),),
        ),
        Cause.GC,
        "Including short collections that are only counted: 99.0 ms.",
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
        "12 of 12 samples fell inside a garbage collection.",
    ),
    Story(
        "many callbacks in one turn are a burst, whatever they did",
        evidence(samples(*moving(), running=True), **turn(412, 130, 2)),
        Cause.BURST,
        "412 callbacks in one turn took 130 ms of 140 ms together; the longest took 2.00 ms.",
    ),
    Story(
        "a turn with one long callback is judged by its samples",
        evidence(samples(*moving(), running=True), **turn(2, 130, 90)),
        Cause.CPU,
        "on a CPU",
    ),
    Story(
        "a collection that fills a turn is no burst",
        evidence(samples(*moving(), running=True), **turn(30, 130, 20), collections=(collection(10, 130),)),
        Cause.GC,
        "took 120 ms of 140 ms",
    ),
    Story(
        "standing still without the kernel's view is unknown",
        twelve("re.match(pattern, text)", view=False),
        Cause.UNKNOWN,
        "the kernel's view of the thread is missing",
    ),
    Story(
        "a system call that tells nothing is named",
        twelve("re.match(pattern, text)", "ioctl"),
        Cause.UNKNOWN,
        "slept in ioctl, which names no cause",
    ),
    Story("without a sample, it says so", evidence(lasted_ms=300), Cause.UNKNOWN, "No sample was taken: "),
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
        "No sample was taken",
    ),
    Story(
        "without a sample, the record of a turn makes a burst",
        evidence(lasted_ms=300, **turn(412, 290, 2)),
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


def test_the_counters_overrule_samples_of_sleep():
    taken = [
        replace(
            sample,
            kernel=kernel("S" if index % 5 < 3 else "R", "futex" if index % 5 < 3 else None, index * 10 * MS),
        )
        for index, sample in enumerate(samples(*moving(23)))
    ]
    stall = judged(evidence(tuple(taken)), SOURCE)
    assert (stall.cause, stall.second_cause) == (Cause.CPU, None)


def test_the_code_is_blamed_if_an_idle_host_would_stall():
    stall = judged(evidence(samples(*moving(60), running=True, queued=0.6)), SOURCE)
    assert (stall.cause, stall.second_cause, stall.cause_share) == (Cause.CPU, None, 1.0)
    assert "60 of 60 samples were on a CPU or waited for one, at 60 places of the code." in stall.evidence
    assert any(re.match(r"It waited 3\d\d ms of 620 ms for a CPU\.", told) for told in stall.evidence)


def test_the_host_decides_if_an_idle_one_would_not_stall():
    # Of 120 ms a fifth in the run queue: without it no stall.
    stall = judged(evidence(samples(*moving(10), running=True, queued=0.2)), SOURCE)
    assert (stall.cause, stall.second_cause) == (Cause.HOST, Cause.CPU)


def test_a_stop_is_the_cause_where_it_is_the_largest_part():
    assert stopped_for(600).cause is Cause.HOST
    shorter = stopped_for(120)
    assert (shorter.cause, shorter.second_cause) == (Cause.CPU, Cause.HOST)


def stopped_for(stop_ms: int) -> Stall:
    """200 ms of Python that computes, stopped in the middle."""
    taken = samples(*moving(20), running=True)
    late = [
        replace(one, at_ns=one.at_ns + (stop_ms * MS if index >= 10 else 0))
        for index, one in enumerate(taken)
    ]
    return judged(evidence(tuple(late)), SOURCE)


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
    stall = judged(twelve(None, "clock_nanosleep"))
    assert stall.cause is Cause.SLEEP
    assert stall.culprit is None
    assert stall.title == "sleeping in handler"


def moving_unread(*read: Stack) -> StallEvidence:
    """25 samples of Python that computes, most stacks of which moved as they were read."""
    return evidence(samples(*read, *[None] * (25 - len(read)), running=True, gil=GilState.SELF))


def test_samples_without_a_stack_are_no_evidence_of_place():
    stall = judged(moving_unread(*moving()[:2]), SOURCE)
    assert stall.cause is Cause.CPU
    assert "25 of 25 samples were on a CPU, at 2 places of the code." in stall.evidence
    assert "23 of 25 stacks changed while they were read, and are not known." in stall.evidence
    assert (stall.grade, stall.coverage < 0.1, stall.confidence < 0.5) == (Grade.WEAK, True, True)
    assert judged(moving_unread(), SOURCE).grade is Grade.WEAK


def test_a_stack_that_stood_between_lost_ones_is_no_c_call():
    # Only what keeps still can be read: that it does so again and again proves nothing.
    call = at_call("re.match(pattern, text)")
    lost = samples(*[call, call, call, None] * 8, running=True, gil=GilState.SELF)
    assert judged(evidence(lost), SOURCE).cause is Cause.CPU
    few = moving_unread(call, call)
    assert judged(few, SOURCE).cause is Cause.CPU


def test_the_stacks_of_all_samples_name_the_line():
    # Those that speak for the cause have none.
    lost = samples(*[None] * 20, running=True, gil=GilState.SELF)
    asleep = shifted(samples(*[at_call("time.sleep(0.3)")] * 4, syscall="clock_nanosleep"), 20)
    spent = [replace(one, kernel=replace(one.kernel, on_cpu_ns=200 * MS)) for one in asleep]
    stall = judged(evidence((*lost, *spent)), SOURCE)
    assert stall.cause is Cause.CPU
    assert (stall.culprit.function, stall.culprit.line) == ("handler", 3)


@pytest.mark.parametrize("call", ["time.sleep(0.3)", "total += 1"])
def test_a_glimpse_of_a_running_thread_is_no_cause(call):
    # Its only sample is 0.5 ms before the end: the watchdog had no core before.
    (sample,) = samples(at_call(call), running=True)
    late = evidence((replace(sample, at_ns=150 * MS - MS // 2),), lasted_ms=150)
    stall = judged(late, SOURCE)
    assert stall.cause is Cause.UNKNOWN
    told = "1 of 1 sample: the thread ran, but too little of the stall was seen to tell for the rest."
    assert told in stall.evidence
    seen = judged(evidence((replace(sample, at_ns=100 * MS),), lasted_ms=110), SOURCE)
    assert seen.cause in (Cause.CPU, Cause.NATIVE_CPU)


def test_thin_coverage_lowers_the_confidence():
    taken = samples(at_call("time.sleep(0.3)"), syscall="clock_nanosleep")
    thin = judged(evidence(taken, lasted_ms=1_000), SOURCE)
    assert "The stacks that were read cover only 10.0 ms of 1.00 s." in thin.evidence
    assert thin.confidence < judged(evidence(taken), SOURCE).confidence


def test_stalls_by_the_host_have_a_neutral_title():
    stall = judged(evidence(samples(*moving(60), running=True, queued=0.98)), SOURCE)
    assert stall.cause is Cause.HOST, stall.evidence
    assert stall.title == "runnable, but given no CPU by the host"


# ---- what the system call works on --------------------------------------------------------------


def on(kind: TargetKind, name: str = "", pid: int | None = None) -> Target:
    return Target(kind=kind, name=name, pid=pid)


STDIN = """\
def handler():
    for line in sys.stdin:
        pass
    name = input('? ')
    os.read(pipe, 100)
    print(report)
    os.fsync(journal)
"""


class Aim(NamedTuple):
    title: str
    call: str
    syscall: str
    target: Target | None
    cause: Cause
    says: str


AIMS = [
    Aim(
        "a file is named with its path",
        "os.fsync(journal)",
        "fsync",
        on(TargetKind.FILE, "/var/lib/x.db"),
        Cause.DISK_IO,
        "slept in fsync of /var/lib/x.db.",
    ),
    Aim(
        "a read of a socket is the network, and the peer is named",
        "os.read(pipe, 100)",
        "read",
        on(TargetKind.SOCKET, "10.0.0.5:5432"),
        Cause.NETWORK_IO,
        "slept in read with peer 10.0.0.5:5432.",
    ),
    Aim(
        "a read of a file under a socket's name is the disk",
        "os.read(pipe, 100)",
        "read",
        on(TargetKind.FILE, "/srv/big"),
        Cause.DISK_IO,
        "of /srv/big",
    ),
    Aim(
        "an empty pipe of a child is a wait for the child, and its command is named",
        "os.read(pipe, 100)",
        "read",
        on(TargetKind.PIPE, "ffmpeg", 123),
        Cause.SUBPROCESS,
        "The pipe was empty: child 123 (ffmpeg) had not written to it.",
    ),
    Aim(
        "a full pipe is a wait for whoever reads it",
        "print(report)",
        "write",
        on(TargetKind.PIPE),
        Cause.SUBPROCESS,
        "The pipe was full: the process at its other end did not read it.",
    ),
    Aim(
        "a child is named with its command",
        "os.read(pipe, 100)",
        "wait4",
        on(TargetKind.CHILD, "sleep", 99),
        Cause.SUBPROCESS,
        "slept in wait4 for child 99 (sleep).",
    ),
    Aim(
        "a terminal is no disk",
        "os.read(pipe, 100)",
        "read",
        on(TargetKind.TERMINAL, "/dev/pts/3"),
        Cause.DISK_IO,
        "slept in read of the terminal /dev/pts/3. It waited for input from a person",
    ),
    Aim(
        "standard input is told by its number where nothing else is known",
        "sys.stdin",
        "read",
        None,
        Cause.DISK_IO,
        "or from what feeds standard input",
    ),
    Aim(
        "standard input that is a pipe waits for another process",
        "sys.stdin",
        "read",
        on(TargetKind.PIPE),
        Cause.SUBPROCESS,
        "The pipe was empty",
    ),
    Aim(
        "standard input that is a file is a file",
        "sys.stdin",
        "read",
        on(TargetKind.FILE, "/srv/in"),
        Cause.DISK_IO,
        "slept in read of /srv/in.",
    ),
    *[
        Aim(
            f"{name} is no file",
            "os.read(pipe, 100)",
            syscall,
            on(TargetKind.OTHER, f"anon_inode:{name}"),
            cause,
            f"slept in {syscall} of anon_inode:{name}. {says}",
        )
        for name, syscall, cause, says in (
            ("inotify", "read", Cause.DISK_IO, "It waited for a change of the files that it watches."),
            ("inotify", "poll", Cause.DISK_IO, "It waited for a change of the files that it watches."),
            ("[eventfd]", "read", Cause.DISK_IO, "It waited for another thread or process to write to"),
            ("[eventfd]", "poll", Cause.NETWORK_IO, "The innermost call was"),
            ("[timerfd]", "read", Cause.DISK_IO, "It waited for a timer of the kernel to expire."),
            ("[signalfd]", "read", Cause.DISK_IO, "It waited for a signal."),
            ("[userfaultfd]", "read", Cause.DISK_IO, "It waited for an event of the kernel:"),
        )
    ],
]


def aimed(aim: Aim) -> Stall:
    args = (0 if aim.call == "sys.stdin" else 7, 1, 1)
    here = stack(at(aim.call, STDIN))
    return judged(twelve(here, syscall=aim.syscall, args=args, target=aim.target), STDIN)


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.title)
def test_what_a_call_works_on(aim):
    stall = aimed(aim)
    assert stall.cause is aim.cause, stall.evidence
    assert aim.says in " ".join(stall.evidence)
    assert stall.waited_on == aim.target


def test_a_wait_for_input_has_its_own_title_and_advice():
    stall = aimed(AIMS[7])
    assert stall.title == "waiting for standard input in handler (app.py:2)"
    assert "sys.stdin.readline" in stall.advice


@pytest.mark.parametrize(("state", "says"), [("S", True), ("D", False)])
def test_an_open_in_state_s_waits_for_another_program(state, says):
    taken = samples(*[at_call("file.read()")] * 12, syscall="openat", state=state)
    assert ("opens the other end of a fifo" in " ".join(judged(evidence(taken)).evidence)) is says


# ---- Python that computes, and C ------------------------------------------------------------------

LOOPS = """\
def handler():
    while time.monotonic() < end:
        pass
    for number in range(10_000_000):
        total += number * number
        rows.append(number)
        digest.update(chunk)
    total = [x * x for x in xs]
    product = left @ right
    for row in sorted(numbers):
        pass
    return fib(n - 1) + fib(n - 2)
"""

COMPUTING = [
    ("arithmetic in a loop", "number * number", GilState.SELF, Cause.CPU),
    ("an assignment in a loop", "total += number * number", GilState.SELF, Cause.CPU),
    ("what a loop runs over", "range(10_000_000)", GilState.SELF, Cause.CPU),
    ("the condition of a loop", "time.monotonic()", GilState.SELF, Cause.CPU),
    ("a comparison of a loop", "time.monotonic() < end", GilState.SELF, Cause.CPU),
    ("a quick call in a loop", "rows.append(number)", GilState.SELF, Cause.CPU),
    ("arithmetic in a comprehension", "x * x", GilState.SELF, Cause.CPU),
    ("a long call in a loop", "digest.update(chunk)", GilState.SELF, Cause.NATIVE_CPU),
    ("a sort that a loop runs over", "sorted(numbers)", GilState.SELF, Cause.NATIVE_CPU),
    ("an operation that nothing repeats", "left @ right", GilState.SELF, Cause.NATIVE_CPU),
    ("arithmetic without the GIL", "number * number", GilState.FREE, Cause.NATIVE_CPU),
]


@pytest.mark.parametrize(("title", "text", "gil", "cause"), COMPUTING, ids=[row[0] for row in COMPUTING])
def test_samples_at_one_position(title, text, gil, cause):
    here = stack(at(text, LOOPS))
    stall = judged(evidence(samples(*[here] * 30, running=True, gil=gil)), LOOPS)
    assert stall.cause is cause, title


def test_a_position_that_calls_python_is_no_c_call():
    caller = at("fib(n - 1)", LOOPS, function="fib")
    inner = stack(frame("fib", APP, 12, column=5, end_column=9), caller)
    between = stack(caller)
    taken = samples(*[between] * 12, *[inner] * 3, running=True, gil=GilState.SELF)
    assert judged(evidence(taken), LOOPS).cause is Cause.CPU


def test_a_quick_call_that_is_left_and_made_again_is_no_c_call():
    source = "def parse(text):\n    return int(text)\ndef load():\n    parse(text)\n"
    caller = at("parse(text)", source, function="load")
    parses, between = stack(at("int(text)", source, function="parse"), caller), stack(caller)
    again = [*[parses] * 6, between, *[parses] * 6]
    taken = samples(*again, running=True, gil=GilState.SELF)
    assert judged(evidence(taken), source).cause is Cause.CPU
    once = samples(*[parses] * 12, between, running=True, gil=GilState.SELF)
    assert judged(evidence(once), source).cause is Cause.NATIVE_CPU


def test_an_operator_that_reaches_python_is_no_c_call():
    source = "def handler():\n    return position not in self._positions\n"
    search = at("position not in self._positions", source)
    inner = stack(frame("Position.__eq__", APP, 12, column=5, end_column=9), search)
    taken = samples(*[stack(search)] * 12, *[inner] * 3, running=True, gil=GilState.SELF)
    assert judged(evidence(taken), source).cause is Cause.CPU
    only_c = samples(*[stack(search)] * 15, running=True, gil=GilState.SELF)
    assert judged(evidence(only_c), source).cause is Cause.NATIVE_CPU


def test_functions_that_only_come_and_go_are_python():
    """They were too short to be given out, but other readings of the same walk ended in them."""
    source = "def handler():\n    return position not in self._positions\n"
    search = [stack(at("position not in self._positions", source))] * 12
    taken = samples(*search, running=True, gil=GilState.SELF, calls_python=True)
    assert judged(evidence(taken), source).cause is Cause.CPU


def test_without_the_source_one_position_is_a_doubtful_c_call():
    here = stack(frame("handler", APP, 5, column=9, end_column=20))
    stall = judged(evidence(samples(*[here] * 30, running=True, gil=GilState.SELF)))
    assert stall.cause is Cause.NATIVE_CPU
    assert stall.confidence < 0.7


@pytest.mark.parametrize(
    ("names", "title", "told"),
    [
        (
            CallbackNames(name="consume", task="Task-2"),
            "freeing objects in consume",
            "No frame of the task was left: most likely the objects that it had kept were freed.",
        ),
        (
            CallbackNames(name="compress"),
            "a C call computing in compress",
            "The loop had called no Python code: a callback written in C, or objects freed after one.",
        ),
    ],
    ids=["a task", "a callback"],
)
def test_c_code_called_by_the_loop_has_its_own_words(names, title, told):
    stall = judged(evidence(samples(*[stack()] * 12, running=True, gil=GilState.SELF), names=names))
    assert (stall.cause, stall.culprit, stall.title) == (Cause.NATIVE_CPU, None, title)
    assert told in stall.evidence
    assert not any("handle._run" in sentence for sentence in stall.evidence)


@pytest.mark.parametrize("call", ["os.fsync(journal)", "os.read(pipe, 100)"])
def test_work_on_a_file_that_lies_in_memory_is_the_files(call):
    here = stack(at(call, STDIN))
    stall = judged(twelve(here, running=True, gil=GilState.FREE), STDIN)
    assert stall.cause is Cause.DISK_IO
    assert "what it needed was in memory" in " ".join(stall.evidence)


@pytest.mark.parametrize(
    ("asleep_of_20", "gil", "cause"),
    [
        (10, GilState.FREE, Cause.DISK_IO),
        (6, GilState.OTHER, Cause.DISK_IO),
        (4, GilState.FREE, Cause.NATIVE_CPU),
        (6, GilState.SELF, Cause.NATIVE_CPU),
    ],
    ids=["half", "a third", "only its end", "the rest holds the GIL"],
)
def test_a_call_that_syncs_is_the_disks_as_a_whole(asleep_of_20, gil, cause):
    source = "def handler():\n    database.commit()\n"
    here = stack(at("database.commit()", source))
    asleep = samples(*[here] * 20, syscall="fdatasync")[:asleep_of_20]
    running = shifted(samples(*[here] * (20 - asleep_of_20), running=True, gil=gil), asleep_of_20)
    stall = judged(evidence((*asleep, *running)), source)
    assert stall.cause is cause, stall.evidence
    if cause is Cause.DISK_IO:
        assert stall.cause_share == 1.0
        told = f"{20 - asleep_of_20} of 20 samples were on a CPU in the same call, without the GIL."
        assert told in stall.evidence


def test_pages_read_as_they_are_touched_are_the_disk():
    here = stack(at("number * number", LOOPS))
    taken = samples(*[here] * 12, running=True, queued=0.0, gil=GilState.SELF)
    faulting = tuple(
        replace(
            sample,
            kernel=replace(sample.kernel, on_cpu_ns=sample.kernel.on_cpu_ns // 3, major_faults=index * 40),
        )
        for index, sample in enumerate(taken)
    )
    stall = judged(evidence(faulting, end_cpu_ns=40 * MS), LOOPS)
    assert stall.cause is Cause.DISK_IO
    assert "440 pages had to be read from disk" in " ".join(stall.evidence)


def test_a_fork_makes_a_child_even_while_it_computes():
    source = "def handler():\n    child = os.fork()\n    other = repo.fork()\n"
    forks = [stack(at(call, source)) for call in ("os.fork()", "repo.fork()")]
    first, second = (judged(twelve(fork, running=True, gil=GilState.SELF), source) for fork in forks)
    assert (first.cause, second.cause) == (Cause.SUBPROCESS, Cause.NATIVE_CPU)


# ---- collections ------------------------------------------------------------------------------------


def test_a_collection_that_was_asked_for_is_the_lines():
    source = "def tidy():\n    gc.collect()\n"
    here = stack(at("gc.collect()", source, function="tidy"))
    taken = samples(*[here] * 12, running=True, gil=GilState.SELF, in_gc=True)
    stall = judged(evidence(taken, collections=(collection(1, 139),)), source)
    assert (stall.cause, stall.title) == (Cause.GC, "gc.collect() in tidy (app.py:2)")
    assert "Leave `gc.collect()` out" in stall.advice


def test_an_automatic_collection_names_no_line():
    stall = judged(evidence(samples(*moving(), running=True), collections=(collection(10, 110),)), SOURCE)
    assert stall.title == "automatic garbage collection"
    assert stall.culprit is not None


def test_a_short_collection_is_not_the_cause():
    stall = judged(evidence(samples(*moving(), running=True), collections=(collection(10, 22),)), SOURCE)
    assert stall.cause is Cause.CPU


def test_a_collection_that_was_not_run_is_the_hosts():
    what = evidence(samples(*moving(), running=True, queued=0.9), collections=(collection(1, 139),))
    stall = judged(what, SOURCE)
    assert stall.cause is Cause.HOST


# ---- holders ----------------------------------------------------------------------------------------


def held_by(tid: int, function: str, **more: object) -> dict[str, object]:
    holder = Stack(
        frames=(frame(function, "/srv/app/jobs.py", 12), frame("Thread.run", f"{STDLIB}/threading.py"))
    )
    return {"holder_tid": tid, "holder_stack": holder, **more}


def shifted(taken: tuple[Sample, ...], by: int) -> tuple[Sample, ...]:
    return tuple(replace(sample, at_ns=sample.at_ns + by * 10 * MS) for sample in taken)


def test_each_holder_of_the_gil_has_its_share():
    waits = {"syscall": "futex", "gil": GilState.OTHER, "waits_for_gil": True}
    here = at_call("json.loads(body)")
    first = samples(*[here] * 9, **waits, **held_by(71, "crunch"))
    second = shifted(samples(here, **waits, **held_by(72, "count")), 9)
    names = ((71, "worker-1"), (72, "worker-2"))
    stall = judged(evidence((*first, *second), thread_names=names), SOURCE)
    assert stall.cause is Cause.GIL
    assert [(holder.thread, holder.culprit.function) for holder in stall.holders] == [
        ("worker-1", "crunch"),
        ("worker-2", "count"),
    ]
    assert stall.holders[0].share == pytest.approx(0.88, abs=0.1)
    assert stall.holder == stall.holders[0]
    assert stall.title == "GIL held by worker-1 in crunch (jobs.py:12)"
    assert any(sentence.startswith("Also held by worker-2 in count") for sentence in stall.evidence)


def asking(queued_ms: int, awake: range = range(3, 7)) -> tuple[Sample, ...]:
    """Waits for the GIL, and is found awake in some samples. By their end it has waited for a core, too."""
    here = at_call("json.loads(body)")
    waits = {"gil": GilState.OTHER, **held_by(71, "crunch")}
    asleep = samples(*[here] * 10, syscall="futex", waits_for_gil=True, **waits)
    ready = samples(*[here] * 10, state="R", **waits)
    taken = [ready[index] if index in awake else sample for index, sample in enumerate(asleep)]
    after = [replace(one.kernel, run_queue_ns=queued_ms * MS) for one in taken[awake.stop :]]
    counted = [*(one.kernel for one in taken[: awake.stop]), *after]
    return tuple(replace(one, kernel=told) for one, told in zip(taken, counted, strict=True))


@pytest.mark.parametrize("awake", [range(3, 7), range(4)], ids=["in the middle", "from the begin on"])
def test_a_thread_that_keeps_asking_waits_for_the_gil(awake):
    before = ThreadReading(at_ns=-5 * MS, kernel=kernel("S"))
    taken = asking(queued_ms=2, awake=awake)
    stall = judged(evidence(taken, before=before, thread_names=((71, "worker-1"),)), SOURCE)
    assert (stall.cause, stall.second_cause) == (Cause.GIL, None)
    assert "10 of 10 samples waited for the GIL." in stall.evidence
    assert stall.ledger.gil_wait_ns == pytest.approx(stall.duration_ns, rel=0.05)
    assert {span.activity.doing for span in stall.timeline.spans} == {Doing.GIL_WAIT}


@pytest.mark.parametrize(
    "taken",
    [
        asking(queued_ms=40),
        asking(queued_ms=2, awake=range(4)),
        asking(queued_ms=0, awake=range(6, 10)),
        [replace(one, gil=GilState.FREE if one.kernel.thread_state == "R" else one.gil) for one in asking(2)],
    ],
    ids=["no core was free", "what was before is not known", "to the end", "nobody held it"],
)
def test_a_ready_thread_need_not_wait_for_the_gil(taken):
    stall = judged(evidence(tuple(taken), thread_names=((71, "worker-1"),)), SOURCE)
    assert any(sentence.startswith("6 of 10 samples waited for the GIL.") for sentence in stall.evidence)
    assert len(stall.timeline.spans) > 1


def test_a_thread_that_asks_for_the_gil_and_gets_no_core_computes_nothing():
    """Most samples found it ready: it woke to ask, and the machine was busy."""
    taken = asking(queued_ms=70, awake=range(1, 9))
    stall = judged(evidence(taken, thread_names=((71, "worker-1"),), threshold_ns=20 * MS), SOURCE)
    assert stall.cause is Cause.GIL
    assert stall.second_cause not in (Cause.NATIVE_CPU, Cause.CPU)
    assert stall.title == "GIL held by worker-1 in crunch (jobs.py:12)"


@pytest.mark.parametrize(("of_ten", "struck"), [(1, None), (5, "write")])
def test_a_short_gil_wait_names_no_package_line(of_ten, struck):
    waits = {"syscall": "futex", "gil": GilState.OTHER, "waits_for_gil": True, **held_by(71, "crunch")}
    package = stack(frame("Writer.write", f"{SITE}/aiohttp/http_writer.py", 116))
    select = stack(frame("EpollSelector.select", f"{STDLIB}/selectors.py", 468), loop=False)
    taken = samples(*[package] * of_ten, *[select] * (10 - of_ten), **waits)
    stall = judged(evidence(taken, thread_names=((71, "worker-1"),)), SOURCE)
    assert stall.cause is Cause.GIL
    assert (stall.culprit and stall.culprit.function) == struck
    assert stall.title == "GIL held by worker-1 in crunch (jobs.py:12)"


def locked(proof: LockProof, tid: int = 71, kind: str = "RLock", **more: Any) -> Stall:
    view = LockView(kind=kind, proof=proof)
    taken = samples(*[at_call("lock.acquire()")] * 12, syscall="futex", lock=view, **held_by(tid, "flush"))
    return judged(evidence(taken, thread_names=((71, "worker-1"), (72, "worker-2")), **more), SOURCE)


@pytest.mark.parametrize(
    ("tids", "count", "told"),
    [
        ((72,), 1, "1 other thread waited for it, too: worker-2."),
        ((72, 80), 2, "2 other threads waited for it, too: worker-2 and thread 80."),
        ((72, 80), 12, "12 other threads waited for it, too: worker-2, thread 80 and 10 more."),
    ],
    ids=["one", "two", "more than are kept"],
)
def test_other_threads_that_waited_for_the_lock_are_named(tids, count, told):
    assert told in locked(LockProof.NONE, waiters=tids, waiter_count=count).evidence


def test_the_holder_of_a_lock_is_named_with_its_proof():
    stall = locked(LockProof.OWNER)
    assert stall.cause is Cause.LOCK
    assert stall.title == "waiting for RLock held by worker-1 in flush (jobs.py:12)"
    assert (stall.holder.lock, stall.holder.proof) == ("RLock", LockProof.OWNER)
    assert "The lock itself names its owner." in stall.evidence
    assert "in `flush`" in stall.advice


def test_a_lock_is_held_where_it_was_taken():
    inner = frame("download", "/srv/app/fetch.py", 5)
    outer = (frame("refresh", "/srv/app/cache.py", 12), frame("Thread.run", f"{STDLIB}/threading.py"))
    view = LockView(kind="lock", proof=LockProof.WITH, taken_at=2)
    taken = samples(
        *[at_call("lock.acquire()")] * 12,
        syscall="futex",
        lock=view,
        holder_tid=71,
        holder_stack=Stack(frames=(inner, *outer)),
    )
    stall = judged(evidence(taken, thread_names=((71, "worker-1"),)), SOURCE)
    assert stall.title == "waiting for lock held by worker-1 in refresh (cache.py:12)"
    assert "in `refresh`" in stall.advice


def test_a_thread_that_is_joined_runs_and_is_not_held():
    stall = locked(LockProof.OWNER, kind="thread")
    assert stall.title == "waiting for thread worker-1 to end in flush (jobs.py:12)"
    assert any(line.startswith("Thread worker-1 ran in flush (") for line in stall.evidence)
    assert not any("held" in line or "owner" in line for line in stall.evidence)


def test_a_holder_that_is_not_proven_is_not_named():
    stall = locked(LockProof.NONE)
    assert stall.holders == ()
    assert "The holder is not known." in stall.evidence
    assert "if this thread has taken it before" in stall.advice


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("multiprocessing.Lock", "another process may have to release it"),
        ("multiprocessing.RLock", "another process may have to release it"),
        ("multiprocessing.Semaphore", "A semaphore has no one holder"),
    ],
)
def test_a_lock_of_processes_may_be_held_by_another_one(kind, told):
    stall = locked(LockProof.NONE, kind=kind)
    assert stall.holders == ()
    assert any(told in line for line in stall.evidence)


CONDITION = """\
class Condition:
    def wait(self):
        waiter.acquire()
        self._acquire_restore(saved_state)
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("waiter.acquire()", "No thread holds it: it waits until another one wakes it."),
        ("self._acquire_restore(saved_state)", "The holder is not known."),
    ],
    ids=["waits to be woken", "takes its lock again"],
)
def test_a_wait_to_be_woken_has_no_holder(call, told):
    threading = f"{STDLIB}/threading.py"
    queue = frame("Queue.get", f"{STDLIB}/queue.py", 180)
    here = stack(at(call, CONDITION, function="Condition.wait", file=threading), queue)
    view = LockView(kind="lock", proof=LockProof.NONE)
    taken = twelve(here, "futex", lock=view)
    text = SourceLines(lines=tuple(CONDITION.split("\n")), modified_wall_ns=0)
    stall = judged(taken, sources=SimpleNamespace(read={threading: text}.get))
    assert stall.cause is Cause.LOCK
    assert told in stall.evidence


def test_a_thread_that_waits_for_itself_is_a_deadlock():
    stall = locked(LockProof.WITH, tid=70)
    assert "This thread itself holds it: a deadlock with itself." in stall.evidence
    assert "use an `RLock`" in stall.advice


# ---- imports ----------------------------------------------------------------------------------------


def importing(*inner: Frame, **how: object) -> Stall:
    source = "def handler():\n    import shop.reports\n"
    machinery = frame("_find_and_load", "<frozen importlib._bootstrap>", 9)
    body = frame("<module>", "/srv/app/shop/reports.py", 3)
    here = stack(*inner, machinery, body, machinery, at("import shop.reports", source))
    return judged(twelve(here, **how), source)


def test_imports_name_the_module_and_its_importer():
    nested = frame("<module>", f"{SITE}/pandas/__init__.py", 30)
    stall = importing(nested, running=True, gil=GilState.SELF)
    assert stall.cause is Cause.IMPORT
    assert "were inside `import shop.reports`." in stall.evidence[0]
    assert stall.evidence[1] == (
        f"Most of them ran the module code of {SITE}/pandas/__init__.py, "
        "imported on the way to /srv/app/shop/reports.py."
    )


def test_an_import_that_sleeps_is_an_import():
    stall = importing(frame("<module>", f"{SITE}/slow.py", 1), syscall="clock_nanosleep")
    assert stall.cause is Cause.IMPORT
    assert "Meanwhile 12 of 12 samples slept in clock_nanosleep." in stall.evidence


def test_the_lock_of_a_module_is_named():
    lock = frame("_ModuleLock.acquire", "<frozen importlib._bootstrap>", 120)
    stall = importing(lock, syscall="futex")
    assert stall.cause is Cause.IMPORT
    assert any("lock of a module that another thread imports" in sentence for sentence in stall.evidence)


def test_an_import_lock_names_module_and_importer():
    lock = frame("_ModuleLock.acquire", "<frozen importlib._bootstrap>", 120)
    view = LockView(kind="import lock of shop.reports", proof=LockProof.WITH)
    stall = importing(lock, syscall="futex", lock=view, **held_by(71, "load"))
    assert stall.cause is Cause.IMPORT
    told = [sentence for sentence in stall.evidence if "import lock of shop.reports" in sentence]
    assert told == [
        "12 of 12 samples waited for the import lock of shop.reports, a module that another thread imports."
    ]
    assert any(sentence.startswith("It was held by thread 71 in load") for sentence in stall.evidence)
    assert (stall.holder.thread, stall.holder.culprit.function) == ("thread 71", "load")
    assert stall.title == "waiting for thread 71 to import shop.reports in handler (app.py:2)"
    assert "await asyncio.to_thread" in stall.advice


def test_an_import_that_began_with_a_wait_has_no_holder():
    lock = frame("_ModuleLock.acquire", "<frozen importlib._bootstrap>", 120)
    machinery = frame("_find_and_load", "<frozen importlib._bootstrap>", 9)
    waits = samples(
        *[stack(lock, machinery, frame("handler", APP, 2))] * 3,
        syscall="futex",
        lock=LockView(kind="import lock of shop", proof=LockProof.WITH),
        **held_by(71, "load"),
    )
    runs = samples(
        *[stack(frame("<module>", "/srv/app/shop.py", 3), machinery, frame("handler", APP, 2))] * 12,
        running=True,
    )
    later = tuple(replace(sample, at_ns=sample.at_ns + 30 * MS) for sample in runs)
    stall = judged(evidence((*waits, *later)))
    assert (stall.cause, stall.holder) == (Cause.IMPORT, None)
    assert any(sentence.startswith("It was held by thread 71") for sentence in stall.evidence)


def test_a_forked_worker_waits_for_no_child():
    forked = [
        frame("BaseProcess.run", f"{STDLIB}/multiprocessing/process.py", 108),
        frame("BaseProcess._bootstrap", f"{STDLIB}/multiprocessing/process.py", 314),
        frame("Popen._launch", f"{STDLIB}/multiprocessing/popen_fork.py", 71),
        frame("main", APP, 90),
    ]
    asleep = stack(at("time.sleep(1)", "    time.sleep(1)"), *forked, loop=False)
    stall = judged(evidence(samples(*[asleep] * 12, syscall="clock_nanosleep"), loop_kind="uvloop"))
    assert stall.cause is Cause.SLEEP, stall.evidence
    waits = frame("Popen.wait", f"{STDLIB}/multiprocessing/popen_fork.py", 43)
    stall = judged(twelve(stack(waits, frame("main", APP, 90)), "poll"))
    assert stall.cause is Cause.SUBPROCESS


# ---- bursts, and late starts --------------------------------------------------------------------------


def burst(**more: Any) -> Stall:
    two = (
        Contributor(name="push", count=400, total_ns=250 * MS, longest_ns=2 * MS),
        Contributor(name="poll", count=12, total_ns=40 * MS, longest_ns=4 * MS),
    )
    return judged(evidence(lasted_ms=300, **{"contributors": two, **turn(412, 290, 2), **more}))


def test_a_burst_says_who_scheduled_its_callbacks():
    site = Scheduler(file="/srv/app/feed.py", line=12, count=400)
    entry = Contributor(name="push", count=400, total_ns=250 * MS, longest_ns=2 * MS, scheduled=(site,))
    told = "push: 400 times, 250 ms together, 625 us on average; scheduled at /srv/app/feed.py:12."
    assert told in burst(contributors=(entry,)).evidence


def test_a_burst_lists_callbacks_with_time_count_mean():
    stall = burst(contributors_dropped=3)
    assert stall.title == "412 callbacks in one turn, mostly push"
    assert "push: 400 times, 250 ms together, 625 us on average." in stall.evidence
    assert "3 callbacks are not in these sums: the table was full." in stall.evidence
    assert [entry.name for entry in stall.contributors] == ["push", "poll"]


@pytest.mark.parametrize(("count", "cause"), [(300, Cause.BURST), (30, Cause.HOST)])
def test_a_burst_needs_no_idle_machine(count, cause):
    taken = samples(*moving(count), running=True, queued=0.9, gil=GilState.SELF)
    assert judged(evidence(taken, **turn(600, count * 10, 20)), SOURCE).cause is cause


def test_a_late_start_is_in_the_evidence():
    assert "It began 80.0 ms late: the loop was busy with earlier work." in burst(queue_ns=80 * MS).evidence
    assert not any("late" in sentence for sentence in burst(queue_ns=1000).evidence)


def test_a_stall_before_the_loop_first_waited_is_a_start():
    stall = judged(evidence(lasted_ms=300, first_turn=True))
    assert stall.startup
    assert "It was the loop's first turn: the program was still starting." in stall.evidence
    assert not burst().startup


def test_time_that_was_granted_is_in_the_evidence():
    assert "It was allowed 200 ms, and took longer." in burst(allowance_ns=200 * MS).evidence


# ---- the host -----------------------------------------------------------------------------------------


def gap(before: str, after: str, *, ran_ms: int = 1, **more: Any) -> Stall:
    """Three samples, 400 ms beyond the interval without a look, three more. In state R it computed."""
    here = at_call("total += 1")
    taken = samples(*[here] * 6, gil=GilState.SELF)
    steps = [(before, 10 * MS)] * 2 + [(before, ran_ms * MS)] + [(after, 10 * MS)] * 3
    spent, changed = 0, []
    for index, (sample, (state, step)) in enumerate(zip(taken, steps, strict=True)):
        view = replace(sample.kernel, thread_state=state, on_cpu_ns=spent)
        changed.append(replace(sample, kernel=view, at_ns=sample.at_ns + (400 * MS if index > 2 else 0)))
        spent += step if state == "R" or index == 2 else 0
    return judged(evidence(tuple(changed), **more), SOURCE)


def test_a_gap_in_which_nothing_ran_is_the_hosts():
    stall = gap("R", "R")
    assert (stall.cause, stall.title) == (Cause.HOST, "the process was stopped or frozen")
    assert "For 400 ms neither the thread nor the watchdog ran" in " ".join(stall.evidence)
    assert "what stopped the process" in stall.advice


def test_an_unseen_stall_on_a_crowded_machine_is_no_certain_stop():
    before = ThreadReading(at_ns=0, kernel=kernel("R", on_cpu=0, queue=0))
    unseen = evidence(lasted_ms=600, before=before, end_cpu_ns=3 * MS)
    stall = judged(replace(unseen, **machine(600, 1190)), SOURCE)
    assert (stall.cause, stall.title) == (Cause.HOST, "runnable, but given no CPU by the host")
    assert "the watchdog got no core" in " ".join(stall.evidence)
    calm = judged(unseen, SOURCE)
    assert calm.title == "the process was stopped or frozen"
    assert calm.confidence > stall.confidence


def test_a_gap_in_which_the_thread_computed_is_the_watchdogs_own():
    assert gap("R", "R", ran_ms=400).cause is not Cause.HOST


def test_a_gap_in_a_sleep_is_the_sleeps_on_a_busy_machine():
    asleep = gap("S", "S")
    assert asleep.cause is not Cause.HOST
    assert gap("S", "S", **machine(600, 100)).cause is Cause.HOST


def test_a_sleep_seen_late_that_woke_late_is_a_sleep():
    """A sleep of 150 ms, the first look after 120 ms, and no core for the last 25."""
    here, looks = at_call("time.sleep(0.3)"), [(120, "S"), (130, "S"), (140, "S"), (150, "R"), (160, "R")]
    taken = [
        replace(
            samples(here, syscall="clock_nanosleep" if state == "S" else None)[0],
            at_ns=at_ms * MS,
            kernel=kernel(state, "clock_nanosleep" if state == "S" else None, on_cpu=300_000),
        )
        for at_ms, state in looks
    ]
    before = ThreadReading(at_ns=-5 * MS, kernel=kernel("S", on_cpu=0))
    seen = evidence(tuple(taken), before=before, end_ns=174 * MS, end_cpu_ns=400_000)
    stall = judged(seen, SOURCE)
    assert stall.cause is Cause.SLEEP, stall.evidence


def test_one_late_look_at_a_thread_that_did_not_run():
    """131 ms with 0.9 ms of CPU time, seen once, ready to run, 10 ms before the end."""
    (sample,) = samples(at_call("total += 1"), gil=GilState.SELF)
    late = replace(sample, at_ns=121 * MS, kernel=kernel("R", on_cpu=50 * MS))
    seen = evidence((late,), end_ns=131 * MS, end_cpu_ns=50 * MS + 907_271)
    assert judged(seen, SOURCE).cause is Cause.HOST
    ran = evidence((late,), end_ns=131 * MS, end_cpu_ns=59 * MS)
    assert judged(ran, SOURCE).cause is not Cause.HOST


def test_a_part_of_a_turn_without_samples_is_a_burst():
    """Its samples are in the stall of the callback that came after it, and so is its CPU time."""
    part = {**turn(300, 600, 3), "contributors": (), "end_cpu_ns": None}
    before = ThreadReading(at_ns=0, kernel=kernel("R", on_cpu=0, queue=0))
    assert judged(evidence(lasted_ms=610, before=before, **part), SOURCE).cause is Cause.BURST


def test_the_portable_watchdog_is_late_for_other_reasons():
    told = " ".join(gap("R", "R", engine="portable").evidence)
    assert "neither the thread nor the watchdog" not in told


def test_a_stop_and_a_crowd_are_both_the_hosts():
    here, taken = at_call("total += 1"), []
    for index in range(22):
        after = max(0, index - 2)  # of the stop: 400 ms in neither sum; then a quarter of a core
        view = kernel("R", on_cpu=after * 2_500_000, queue=after * 7_500_000)
        at_ns = (20 + 10 * index + (400 if index > 2 else 0)) * MS
        taken.append(replace(samples(here, gil=GilState.SELF)[0], kernel=view, at_ns=at_ns))
    assert judged(evidence(tuple(taken)), SOURCE).cause is Cause.HOST


def test_a_stall_that_is_one_when_idle_is_the_codes():
    # A twentieth of a core, for three seconds: 150 ms of Python.
    crowded = evidence(samples(*moving(300), running=True, queued=0.95, gil=GilState.SELF))
    stall = judged(crowded, SOURCE)
    assert (stall.cause, stall.second_cause) == (Cause.CPU, None), stall.evidence


@pytest.mark.parametrize(("share", "cause"), [(0.06, Cause.HOST), (0.07, Cause.GIL)])
def test_a_starved_stalls_rest_gives_the_cause(share, cause):
    starved = SimpleNamespace(
        duration_ns=1_500 * MS, evidence=SimpleNamespace(threshold_ns=100 * MS), sample_count=150
    )
    starved.without = lambda _: starved
    found = (
        Finding(cause=Cause.HOST, share=0.9, confidence=0.9, evidence=(), yields=True),
        Finding(cause=Cause.GIL, share=share, confidence=0.9, evidence=()),
    )
    assert judge(starved, [lambda _, each=each: each for each in found], coverage=1.0).cause is cause


def test_shares_add_up_to_the_stall_at_most():
    stalled = SimpleNamespace(
        duration_ns=119 * MS, evidence=SimpleNamespace(threshold_ns=100 * MS), sample_count=2
    )
    stalled.without = lambda _: stalled
    found = (
        Finding(cause=Cause.HOST, share=0.59, confidence=0.9, evidence=()),
        Finding(cause=Cause.NATIVE_CPU, share=0.63, confidence=0.9, evidence=()),
    )
    verdict = judge(stalled, [lambda _, each=each: each for each in found], coverage=1.0)
    assert [(one.cause, round(one.share, 2)) for one in verdict.findings] == [
        (Cause.HOST, 0.59),
        (Cause.NATIVE_CPU, 0.41),
    ]


def test_a_throttled_container_is_in_the_evidence():
    host = (
        HostReading(at_ns=0, throttled_ns=0),
        HostReading(at_ns=140 * MS, throttled_ns=100 * MS, system_busy_ns=0, system_total_ns=1),
    )
    stall = judged(evidence(samples(*moving(), running=True, queued=0.8), host=host), SOURCE)
    assert (stall.cause, stall.title) == (Cause.HOST, "the container's CPU quota was used up")
    assert "The container was throttled for 100 ms by its CPU quota." in stall.evidence
    assert "cpu.max" in stall.advice
    assert stall.surroundings.throttled_ns == 100 * MS


def robbed(stolen: float, *stacks: Stack, until_ms: int = 140, **more: Any) -> Stall:
    """One of two cores busy; by its clock the thread ran all the time, as some kernels have it."""
    host = machine(until_ms, until_ms, system_stolen_ns=int(stolen * until_ms * MS))
    return judged(evidence(samples(*stacks or moving(), **{"running": True, **more}), **host), SOURCE)


@pytest.mark.parametrize("queued", [0.0, 0.3], ids=["the kernel counted it as run", "or not"])
def test_time_that_a_hypervisor_took_is_the_hosts(queued):
    stall = robbed(0.7, queued=queued)
    assert (stall.cause, stall.title) == (Cause.HOST, "the hypervisor gave the CPU to other machines")
    assert "For 70 % of their busy time the hypervisor ran other machines (steal)." in stall.evidence
    assert "Your code is not at fault" in stall.advice


def test_a_smaller_part_that_a_hypervisor_took_is_not():
    stall = robbed(0.45)
    assert (stall.cause, stall.second_cause) == (Cause.CPU, None)


def test_a_hypervisor_takes_nothing_from_a_sleep():
    here = [at_call("time.sleep(0.3)")] * 12
    stall = robbed(0.9, *here, running=False, syscall="clock_nanosleep")
    assert (stall.cause, stall.second_cause) == (Cause.SLEEP, None)


def test_a_stall_that_the_code_would_make_alone_is_its_own():
    stall = robbed(0.7, *moving(300), until_ms=3_030)
    assert (stall.cause, stall.second_cause) == (Cause.CPU, None)
    assert "For 70 % of their busy time the hypervisor ran other machines (steal)." in stall.evidence


def test_a_lowered_priority_and_its_line_are_evidence():
    host = (HostReading(at_ns=0), HostReading(at_ns=140 * MS, nice=10, policy=3, cores=1))
    starved = evidence(samples(*moving(), running=True, queued=0.8), host=host)
    made = PriorityChange(call="os.nice(10)", file="/app/jobs.py", line=7, function="lower", tid=starved.tid)
    others = replace(made, call="os.nice(19)", tid=starved.tid + 1)
    stall = judged(starved, SOURCE, session=replace(SESSION, cores=4, priority_changes=(others, made)))
    assert stall.cause is Cause.HOST
    told = (
        "The thread has a low priority: nice 10.",
        "The thread is scheduled after others: SCHED_BATCH.",
        "The thread may run on 1 of the 4 cores that its process began with.",
        "os.nice(10) did that: /app/jobs.py:7 in lower.",
    )
    assert [sentence for sentence in stall.evidence if sentence in told] == list(told)
    assert not [sentence for sentence in stall.evidence if "os.nice(19)" in sentence]
    assert stall.advice.startswith("Do not lower the priority")
    assert (stall.surroundings.nice, stall.surroundings.policy, stall.surroundings.cores) == (10, "batch", 1)


def test_a_usual_priority_is_no_evidence():
    host = (HostReading(at_ns=0), HostReading(at_ns=140 * MS, nice=0, policy=0, cores=4))
    starved = evidence(samples(*moving(), running=True, queued=0.8), host=host)
    raised = PriorityChange(
        call="os.nice(-5)", file="/app/jobs.py", line=7, function="raise", tid=starved.tid
    )
    stall = judged(starved, SOURCE, session=replace(SESSION, cores=4, priority_changes=(raised,)))
    assert not [sentence for sentence in stall.evidence if "priority" in sentence or "os.nice" in sentence]
    assert "Your code is not at fault" in stall.advice


# ---- mixed stalls ---------------------------------------------------------------------------------------

MIXED = """\
def wait():
    time.sleep(0.32)
def count():
    total += number
def first():
    open(path)
def second():
    open(path)
"""


def phases(*parts: tuple[str, str, int, dict[str, Any]]) -> Stall:
    taken: tuple[Sample, ...] = ()
    for function, call, count, how in parts:
        here = stack(at(call, MIXED, function=function), frame("handler", APP, 40))
        taken += shifted(samples(*[here] * count, **how), len(taken))
    return judged(evidence(taken), MIXED)


def test_a_stall_of_two_causes_has_portions():
    computing = {"state": "R", "view": True, "gil": GilState.SELF}
    stall = phases(
        ("wait", "time.sleep(0.32)", 16, {"syscall": "clock_nanosleep"}),
        ("count", "total += number", 4, computing),
    )
    assert stall.cause is Cause.SLEEP
    assert [(part.cause, part.culprit.function) for part in stall.portions if part.culprit] == [
        (Cause.SLEEP, "wait")
    ] + [(part.cause, part.culprit.function) for part in stall.portions[1:] if part.culprit]
    assert stall.portions[0].share == pytest.approx(0.8, abs=0.05)
    assert stall.portions[0].blocker.call == "time.sleep(0.32)"
    assert stall.culprit.function == "wait"


def test_functions_in_a_row_are_portions_of_one_cause():
    opening = {"syscall": "openat"}
    stall = phases(("first", "open(path)", 14, opening), ("second", "open(path)", 6, opening))
    assert [part.culprit.function for part in stall.portions] == ["first", "second"]


def test_functions_that_took_turns_are_one_computation():
    opening = {"syscall": "openat"}
    turns = [("first", "open(path)", 1, opening), ("second", "open(path)", 1, opening)] * 10
    assert phases(*turns).portions == ()


def test_one_cause_and_culprit_need_no_portions():
    assert phases(("wait", "time.sleep(0.32)", 20, {"syscall": "clock_nanosleep"})).portions == ()


def test_the_second_cause_is_a_field():
    stall = phases(
        ("wait", "time.sleep(0.32)", 12, {"syscall": "clock_nanosleep"}),
        ("first", "open(path)", 8, {"syscall": "openat"}),
    )
    assert stall.second_cause is Cause.DISK_IO
    assert stall.cause_share + stall.second_share == pytest.approx(1.0, abs=0.01)


def test_the_culprit_is_of_the_cause():
    # Half of the time in one function that waits in two ways, the rest elsewhere: the cause has a line.
    stall = phases(
        ("first", "open(path)", 9, {"syscall": "openat"}),
        ("wait", "time.sleep(0.32)", 11, {"syscall": "clock_nanosleep"}),
    )
    assert (stall.cause, stall.culprit.function) == (Cause.SLEEP, "wait")


# ---- how far the samples carry it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "lasted_ms", "grade"),
    [(30, 340, Grade.STRONG), (5, 90, Grade.FAIR), (1, 60, Grade.WEAK), (10, 2_000, Grade.WEAK)],
)
def test_grade(count, lasted_ms, grade):
    what = evidence(
        samples(*[at_call("time.sleep(0.3)")] * count, syscall="clock_nanosleep"), lasted_ms=lasted_ms
    )
    assert judged(what, SOURCE).grade is grade


def test_records_without_samples_are_fair():
    assert burst().grade is Grade.FAIR
    assert judged(evidence(lasted_ms=300)).grade is Grade.WEAK


def test_automatic_collections_yield_to_their_call():
    """Of 400 ms 220 were collections and 180 the call: without the former it were still a stall."""
    every = samples(*[at_call("re.match(pattern, text)")] * 40, running=True, gil=GilState.SELF)
    taken = tuple(
        replace(sample, in_gc=index < 22, gc_total_ns=min(index, 22) * 10 * MS)
        for index, sample in enumerate(every)
    )
    judged_so = judged(evidence(taken, collections=(collection(0, 220),)), SOURCE)
    assert (judged_so.cause, judged_so.second_cause) == (Cause.NATIVE_CPU, Cause.GC)
    assert judged_so.blocker.call == "re.match(pattern, text)"
    assert "the pattern" in judged_so.advice
    assert "`gc.freeze()`" in judged_so.advice
