"""Capabilities are each thread's own: our threads give up what the main one does (docs/how-to/rights.md)."""

from __future__ import annotations

import os
import platform
import sys

import pytest

from loopcanary.assembly.doctor.programs import program_facts
from loopcanary.keeper.exits import has_our_rights

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's"),
    pytest.mark.skipif(os.getuid() != 0, reason="needs root, to have capabilities that it can give up"),
]

_SETS = """
    import ctypes, struct

    libc = ctypes.CDLL(None, use_errno=True)
    ALL = (1 << 64) - 1

    def status(tid):
        with open(f"/proc/self/task/{tid}/status") as file:
            return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}

    def keep(permitted, effective):
        # Of this thread's capabilities those of these sets are left.
        now = status(os.getpid())
        permitted &= int(now["CapPrm"], 16)
        effective &= permitted
        low, high = (1 << 32) - 1, 32
        words = [effective & low, permitted & low, 0, effective >> high, permitted >> high, 0]
        assert libc.capset(struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", *words)) == 0

    def others(name):
        found = []
        for tid in os.listdir("/proc/self/task"):
            if int(tid) != os.getpid():
                try:
                    found.append(status(tid)[name])
                except OSError:
                    pass  # it has just ended
        return found

    def until(condition):
        gives_up = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < gives_up, (others("CapPrm"), others("NoNewPrivs"))
            time.sleep(0.01)

    def turn():
        asyncio.run(asyncio.sleep(0))

    def is_parked():
        # The watchdog sleeps until the next turn.
        from loopcanary.flight import FlightFile
        # Beside the link there is a copy if the machine made the stall a hang.
        found = os.scandir(os.path.join(os.environ["LOOPCANARY_STORE"], "flight"))
        (link,) = [one for one in found if one.is_symlink()]
        with FlightFile.open(os.path.realpath(link)) as flight:
            return flight.header.parked
"""
_NONE = "0" * 16


@pytest.mark.parametrize("keeper", ["1", "0"], ids=["kept", "in the program"])
@pytest.mark.parametrize("when", ["at work", "idle"])
def test_our_threads_give_up_what_the_program_gave_up(place, keeper, when):
    text = f"""
    stall("before")
    if "{when}" == "idle":
        until(is_parked)
    keep(0, 0)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    turn()
    stall("after", 0.3)
    samples()

    def have_followed():
        turn()
        sets = {{*others("CapPrm"), *others("CapEff")}}
        return sets == {{"{_NONE}"}} and {{*others("NoNewPrivs")}} == {{"1"}}

    until(have_followed)
    """
    place.run(place.program(_SETS + text), LOOPCANARY_KEEPER=keeper)
    assert place.culprits() == ["after", "before"]


def test_a_keeper_that_starts_after_that_has_none_either(place):
    program = place.program(
        _SETS
        + """
    import json, pathlib

    turn()
    keep(0, 0)
    stall("after")

    def keepers():
        return list(pathlib.Path(os.environ["LOOPCANARY_STORE"], "keeper").glob("*.json"))

    until(keepers)
    with open(f"/proc/{json.loads(keepers()[0].read_text())['pid']}/status") as file:
        print(*[line.split()[1] for line in file if line.startswith(("CapPrm", "NoNewPrivs"))])
    """
    )
    assert place.run(program, LOOPCANARY_KEEPER="1").stdout == f"{_NONE} 1\n"
    assert place.culprits() == ["after"]


def test_what_the_main_thread_has_only_lowered_our_threads_keep(place):
    """It may raise them, and change all threads' user: glibc ends a process where that fails for some."""
    program = place.program(
        _SETS
        + """
    asyncio.run(asyncio.sleep(0.01))
    keep(ALL, 0)
    gives_up = time.monotonic() + 2.5
    while time.monotonic() < gives_up:  # so that the watchdog looks
        turn()
    keep(ALL, ALL)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    turn()
    print(os.getuid(), {*others("CapPrm")} == {"0000000000000000"})
    """
    )
    assert place.run(program).stdout == "65534 True\n"


def test_a_change_of_users_meets_no_thread_of_ours_that_differs(place):
    """The C library ends a process in which the kernel's answers to its threads differ."""
    program = place.program(
        _SETS
        + """
    pid = os.fork()
    if pid == 0:
        stall("child")
        keep(0, 0)
        for change in (lambda: os.setuid(1), lambda: os.setgroups([])):
            try:
                change()
            except PermissionError:
                print("refused", flush=True)
        sys.exit()
    os.waitpid(pid, 0)
    stall("kept")
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
    os.setuid(1)
    keep(ALL, ALL)
    os.setgid(1)
    turn()
    print(os.getresuid(), os.getresgid())
    """
    )
    assert place.run(program).stdout == "refused\nrefused\n(1, 1, 1) (1, 1, 1)\n"


def test_a_keeper_sees_that_a_program_lacks_its_capabilities(place):
    program = place.program(
        _SETS
        + """
    print("all", flush=True)
    sys.stdin.readline()
    keep(0, 0)
    print("none", flush=True)
    sys.stdin.readline()
    """
    )
    process = place.start(program, stdin=-1, stdout=-1)
    process.stdout.readline()
    assert has_our_rights(process.pid) is True
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()
    assert has_our_rights(process.pid) is False
    process.kill()
    process.wait()
    assert has_our_rights(process.pid) is None


def test_below_another_root_nothing_is_started(place):
    """What lies there at the interpreter's path may be another user's."""
    program = place.program(
        """
    (jail,) = sys.argv[1:]
    asyncio.run(asyncio.sleep(0))
    os.chroot(jail)
    os.chdir("/")
    stall("jailed")
    """
    )
    jail = place.store.parent / "jail"
    jail.mkdir()
    place.run(program, jail, LOOPCANARY_KEEPER="1")
    assert place.culprits() == ["jailed"]
    (session,) = place.sessions().values()
    assert session.statistics["keepers_started"] == session.statistics["keepers_refused"] == 0


_CALLS = {"x86_64": (0xC000003E, 126, 317), "aarch64": (0xC00000B7, 91, 277)}
"""Architecture, capset, seccomp."""


def test_no_filter_of_the_program_ends_it_for_following(place):
    architecture, capset, seccomp = _CALLS[platform.machine()]
    program = place.program(
        _SETS
        + f"""
    asyncio.run(asyncio.sleep(0.01))
    keep(0, 0)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    # BPF: of this architecture capset ends the process, whatever thread calls it (seccomp(2)).
    steps = [
        (0x20, 0, 0, 4), (0x15, 0, 2, {architecture}), (0x20, 0, 0, 0), (0x15, 1, 0, {capset}),
        (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x80000000),
    ]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    whole = ctypes.create_string_buffer(struct.pack("HL", len(steps), ctypes.addressof(text)))
    if libc.syscall({seccomp}, 1, 1, whole) != 0:  # for all threads
        print("no seccomp")
        sys.exit()
    """
        + """
    gives_up = time.monotonic() + 2.5
    while time.monotonic() < gives_up:  # so that the watchdog looks
        turn()
    stall("after")
    """
    )
    if place.run(program).stdout == "no seccomp\n":
        pytest.skip("no seccomp here")
    assert place.culprits() == ["after"]


def test_doctor_names_rights_that_only_our_threads_have(place):
    program = place.program(
        _SETS
        + """
    turn()
    print("runs", flush=True)
    sys.stdin.readline()
    until(is_parked)
    keep(0, 0)
    libc.prctl(38, 1, 0, 0, 0)
    print("dropped", flush=True)
    sys.stdin.readline()
    turn()
    until(lambda: {*others("CapEff")} == {"0" * 16} and {*others("NoNewPrivs")} == {"1"})
    print("followed", flush=True)
    sys.stdin.readline()
    """
    )
    process = place.start(program, stdin=-1, stdout=-1)

    def told():
        process.stdout.readline()
        found = [(status, words) for name, status, words in program_facts(place.store) if name == "rights"]
        process.stdin.write(b"\n")
        process.stdin.flush()
        return found

    assert told() == []
    ((status, words),) = told()
    assert status == "off"
    assert "threads of loopcanary have more privileges than its main thread: CapEff " in words
    assert words.endswith(f", not {_NONE}, NoNewPrivs 0, not 1")
    assert told() == []
