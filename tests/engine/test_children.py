"""Every process that a watched program makes is watched: a session of its own in the same store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .watching import PATIENT_END, PATIENT_FORKS, PRELUDE, is_block

pytestmark = pytest.mark.native
PATIENTLY = PRELUDE + PATIENT_FORKS


def told_blocks(said: str) -> int:
    """How often a block of the program's own was told; where others had the core, it may be a hang."""
    told = [part for part in said.split("[loopcanary] ") if part.startswith(("stall ", "hang "))]
    return sum("stalls/worker.py" in part for part in told)


def test_forked_children_are_watched_beside_their_parent(place):
    program = place.program(
        """
        stall("before")
        children = []
        for name in ("first", "second"):
            pid = os.fork()
            if pid == 0:
                stall(name)
                sys.exit(0)
            children.append(pid)
        stall("parent")
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
        stall("after")
        print(os.getpid(), *children)
    """,
        prelude=PATIENTLY,
    )
    pids = [int(word) for word in place.run(program).stdout.split()]
    by_session = {}
    for stall in place.stalls():
        if is_block(stall):
            by_session.setdefault(stall.session, []).append(stall.culprit.function)
    sessions = place.sessions()
    assert sorted(sessions) == sorted(pids)
    assert {pid: by_session[sessions[pid].id] for pid in pids} == {
        pids[0]: ["before", "parent", "after"],
        pids[1]: ["first"],
        pids[2]: ["second"],
    }
    assert sessions[pids[1]].parent_pid == pids[0]
    assert place.left_behind() == []


def test_a_child_that_runs_no_loop_has_no_engine(place):
    program = place.program(
        """
        stall("parent")
        pid = os.fork()
        if pid == 0:
            held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                    if os.path.exists(f"/proc/self/fd/{fd}")]
            held += open("/proc/self/maps").read().split()
            assert not [name for name in held if ".flight" in name or "loopcanary.db" in name]
            assert len(os.listdir("/proc/self/task")) == 1
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """,
        prelude=PATIENTLY,
    )
    place.run(program)
    assert place.culprits() == ["parent"]
    assert len(place.sessions()) == 1


def test_the_parents_flight_file_is_not_written_to_by_a_child(place):
    """CPython ends the other threads' states in the child before any fork hook, and with them their lanes."""
    program = place.program("""
        import glob
        from loopcanary import flight
        from pathlib import Path
        stalled, child_is_over = threading.Event(), threading.Event()

        def elsewhere():
            async def main():
                samples()  # as above
                await asyncio.sleep(0)
                stalled.set()
                child_is_over.wait()
                block("elsewhere")
            asyncio.run(main())

        thread = threading.Thread(target=elsewhere, name="elsewhere")
        thread.start()
        stalled.wait()
        (link,) = Path(os.environ["LOOPCANARY_STORE"], "flight").glob("*.flight")

        def lanes():
            with_file = flight.FlightFile.open(link.resolve())
            try:
                return [(lane.thread_name, lane.closed_ns) for lane in with_file.lanes()]
            finally:
                with_file.close()

        before = lanes()
        pid = os.fork()
        if pid == 0:
            stall("child")
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert lanes() == before, (before, lanes())
        child_is_over.set()
        thread.join()
    """)
    place.run(program)
    assert "child" in place.culprits()


def test_a_fork_inside_a_callback(place):
    program = place.program(
        """
        async def main():
            samples()  # loads what it needs, which is no part of the block
            await asyncio.sleep(0)
            pid = os.fork()
            if pid == 0:
                asyncio.events._set_running_loop(None)
                threading.Thread(target=stall, args=["child"]).run()
                os._exit(0 if wait_until_stored() else 1)
            block("parent")
            return pid

        def wait_until_stored():
            import loopcanary
            loopcanary.uninstall()
            return True

        assert os.waitpid(asyncio.run(main()), 0)[1] == 0
    """,
        prelude=PATIENTLY,
    )
    place.run(program)
    assert place.culprits() == ["child", "parent"]


def test_a_child_forked_in_a_callback_has_no_stall(place):
    program = place.program("""
        async def main():
            samples()  # as above
            await asyncio.sleep(0)
            if os.fork() == 0:
                block("child")
                os._exit(0)
            block("parent")
        asyncio.run(main())
        os.wait()
    """)
    place.run(program)
    assert place.culprits() == ["parent"]
    assert len(place.sessions()) == 1


@pytest.mark.parametrize(
    ("engine", "keeper"),
    [("native", "1"), ("native", "0"), ("portable", "0")],
    ids=["kept", "native", "portable"],
)
def test_a_child_forked_by_c_code_waits_for_no_thread_of_ours(place, engine, keeper):
    program = place.program("""
        import ctypes, loopcanary
        from loopcanary.engine.drain import Drain
        stall("parent")
        canary = loopcanary._canary
        drain = getattr(canary._engine, "drain", None)
        # One that wants the GIL in the middle of such a fork would keep it from the child.
        assert drain is None or drain.rest(60)
        canary.backend.rest(60.0)
        pid = ctypes.PyDLL(None).fork()
        if pid == 0:
            Drain.finish = lambda *_: os._exit(5)
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        canary.backend.go_on()
        drain is None or drain.start()
    """)
    place.run(program, LOOPCANARY_ENGINE=engine, LOOPCANARY_KEEPER=keeper)
    assert place.culprits() == ["parent"]
    assert len(place.sessions()) == 1


@pytest.mark.parametrize("engine", ["native", "portable"])
def test_a_fork_keeps_no_variable_alive(place, engine):
    program = place.program("""
        import gc, weakref

        class Variable: pass
        kept, ready, forked = [], threading.Event(), threading.Event()

        def elsewhere():
            variable = Variable()
            kept.append(weakref.ref(variable))
            ready.set()
            forked.wait()

        def fork():
            variable = Variable()
            kept.append(weakref.ref(variable))
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0

        stall("before")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        ready.wait()
        gc.disable()
        fork()
        forked.set()
        thread.join()
        assert [variable() for variable in kept] == [None, None]
    """)
    place.run(program, LOOPCANARY_ENGINE=engine)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing(place, method):
    program = place.program(
        f"""
        import multiprocessing
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            workers = [context.Process(target=stall, args=[name]) for name in ("first", "second")]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
                assert worker.exitcode == 0
            stall("parent")
    """,
        prelude=PATIENTLY,
    )
    place.run(program)
    assert place.culprits() == ["first", "parent", "second"]
    assert len(place.sessions()) == 3
    assert place.left_behind() == []


def test_a_pool_of_processes(place):
    program = place.program(
        """
        from concurrent.futures import ProcessPoolExecutor
        if __name__ == "__main__":
            with ProcessPoolExecutor(2) as pool:
                list(pool.map(stall, ["first", "second", "third"]))
    """,
        prelude=PATIENTLY,
    )
    place.run(program)
    assert place.culprits() == ["first", "second", "third"]


def test_a_python_that_is_started_as_a_program(place):
    other = place.program("stall('other')", name="other.py")
    program = place.program(f"""
        import subprocess
        stall("parent")
        subprocess.run([sys.executable, {str(other)!r}], check=True, cwd="/")
    """)
    place.run(program)
    assert place.culprits() == ["other", "parent"]
    assert len(place.sessions()) == 2


def test_children_share_the_store_wherever_they_change_to(place):
    program = place.program(
        """
        import subprocess
        os.makedirs("elsewhere")
        stall("parent")
        if os.fork() == 0:
            os.chdir("/")
            stall("child")
            sys.exit(0)
        os.wait()
        os.chdir("elsewhere")
        subprocess.run([sys.executable, sys.argv[1]], check=True)
    """,
        prelude=PATIENTLY,
    )
    other = place.program("stall('other')", name="other.py")
    place.run(program, other, LOOPCANARY_STORE="")
    store = place.folder / ".loopcanary"
    assert place.culprits(store) == ["child", "other", "parent"]
    assert not (place.folder / "elsewhere" / ".loopcanary").exists()


def test_children_are_left_alone_if_not_followed(place):
    program = place.program("""
        import multiprocessing, subprocess
        if __name__ == "__main__":
            stall("parent")
            if os.fork() == 0:
                stall("forked")
                sys.exit(0)
            os.wait()
            worker = multiprocessing.get_context("spawn").Process(target=stall, args=["spawned"])
            worker.start()
            worker.join()
            subprocess.run([sys.executable, sys.argv[1]], check=True)
            stall("parent_again")
    """)
    other = place.program("stall('other')", name="other.py")
    command = ["-m", "loopcanary", "run", "--quiet", "--no-children", "--store", place.store, program, other]
    place.run(*command)
    assert place.culprits() == ["parent", "parent_again"]


def test_install_alone_follows_children_too(place):
    program = place.program("""
        import loopcanary, subprocess
        loopcanary.install(threshold="100ms", store=sys.argv[1])
        subprocess.run([sys.executable, sys.argv[2]], check=True)
        loopcanary.uninstall()
        assert not [name for name in os.environ if name.startswith(("LOOPCANARY", "PYTHON"))]
        subprocess.run([sys.executable, sys.argv[2]], check=True)
    """)
    other = place.program("stall('other')", name="other.py")
    environment = place.plain()
    command = [sys.executable, program, place.store, other]
    done = subprocess.run(command, env=environment, cwd=place.folder, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert place.culprits() == ["other"]


def test_evidence_survives_an_exec(place):
    """The process id and the start time stay the same (execve(2))."""
    program = place.program("""
        stall("before")
        async def main():
            await asyncio.sleep(0)
            block("while_turning")
            os.execv("/bin/cat", ["cat"])
        asyncio.run(main())
    """)
    process = place.start(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"cat is here\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"cat is here\n"
    assert place.culprits() == ["before", "while_turning"]
    assert place.left_behind() == []
    process.stdin.close()
    assert process.wait() == 0


def test_a_program_that_starts_itself_anew(place):
    program = place.program("""
        if len(sys.argv) == 1:
            stall("before")
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        stall("after")
        print(os.getpid())
    """)
    place.run("-m", "loopcanary", "run", "--quiet", "--store", place.store, program)
    assert place.culprits() == ["after", "before"]
    assert place.left_behind() == []


def test_a_daemon(place):
    program = place.program(
        """
        stall("before")
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        told = os.dup2(1, 100)
        os.closerange(0, 100)
        for _ in range(3):
            os.open("/dev/null", os.O_RDWR)
        stall("daemon")
        import loopcanary
        loopcanary.uninstall()
        os.write(told, b"done")
        os.close(told)
    """,
        prelude=PATIENTLY,
    )
    process = place.start(program, stdout=subprocess.PIPE)
    assert process.stdout.read() == b"done"
    assert process.wait() == 0
    assert place.culprits() == ["before", "daemon"]


def test_a_program_that_closes_all_its_descriptors(place):
    program = place.program("""
        def is_storing():
            open_now = [os.path.realpath(entry) for entry in os.scandir("/proc/self/fd")]
            return any("loopcanary.db" in name for name in open_now)

        stall("before")
        import loopcanary
        while not loopcanary.statistics().get("stalls_reported") or is_storing():
            time.sleep(0.01)
        told = os.dup(1)
        os.closerange(3, told)
        os.closerange(told + 1, 1000)
        mine = [os.open(f"mine-{number}", os.O_RDWR | os.O_CREAT) for number in range(20)]
        for number, fd in enumerate(mine):
            os.write(fd, b"mine %d" % number)
        stall("after")
        loopcanary.uninstall()
        for number, fd in enumerate(mine):
            assert os.pread(fd, 100, 0) == b"mine %d" % number, number
    """)
    place.run(program)
    assert place.culprits() == ["after", "before"]


def test_a_program_that_closes_its_descriptors_first_of_all(place):
    """Each slot and each lane is new then; two stalls at once need two."""
    program = place.program("""
        asyncio.run(asyncio.sleep(0))  # from here on it is watched
        for fd in os.listdir("/proc/self/fd"):
            try:
                if ".flight" in os.readlink(f"/proc/self/fd/{fd}"):
                    os.close(int(fd))
            except OSError:
                pass  # one that a thread of ours had for a moment
        mine = [os.open("mine", os.O_RDWR | os.O_CREAT) for _ in range(20)]
        at_once = threading.Barrier(3)

        def both(name):
            at_once.wait()
            stall(name, 0.5)

        threads = [threading.Thread(target=both, args=[name]) for name in ("one", "two", "three")]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        import loopcanary
        counts = loopcanary.statistics()
        assert not counts["lanes_refused"] and not counts["stalls_dropped_no_slot"], counts
    """)
    place.run(program)
    assert place.culprits() == ["one", "three", "two"]


def test_the_environment_gets_nothing_but_our_own_variables(place):
    text = "import json, os, asyncio; print(json.dumps(dict(os.environ)))"
    watched = json.loads(place.run("-c", text).stdout)
    ours = {name for name in watched if name.startswith("LOOPCANARY")} | {"PYTHONPATH"}
    assert Path(watched["PYTHONPATH"]).name == "_bootstrap"
    plain = subprocess.run([sys.executable, "-c", text], env=place.plain(), capture_output=True, check=True)
    assert {name: value for name, value in watched.items() if name not in ours} == json.loads(plain.stdout)
    assert os.environ.get("LOOPCANARY") is None


def test_a_childs_stderr_that_the_program_reads_stays_the_childs(place):
    worker = place.program(
        """
        stall("worker")
        print("result", file=sys.stderr)
        """,
        prelude=PRELUDE + PATIENT_END,
    )
    program = place.program(
        """
        import subprocess
        words = [sys.executable, "worker.py"]
        assert subprocess.run(words, capture_output=True, check=True).stderr == b"result\\n"
        subprocess.run(words, check=True)
        """,
        name="parent.py",
    )
    worker.rename(worker.with_name("worker.py"))
    words = [sys.executable, "-m", "loopcanary", "run", "--store", str(place.store), str(program)]
    done = subprocess.run(
        words, cwd=place.folder, env=place.plain(), capture_output=True, text=True, check=True, timeout=280
    )
    assert told_blocks(done.stderr) == 1
    assert ", in worker.py (pid " in done.stderr
    assert "no stall" not in done.stderr
    assert place.culprits() == ["worker", "worker"]


def test_captured_stderr_is_left_alone_without_a_loop(place):
    """LOOPCANARY=1 alone, and a parent that never imports asyncio: pytest, a supervisor, a build tool."""
    worker = place.program(
        """
        stall("worker")
        print("result", file=sys.stderr)
        """,
        prelude=PRELUDE + PATIENT_END,
    )
    worker.rename(worker.with_name("worker.py"))
    program = place.program(
        """
        import subprocess, sys
        words = [sys.executable, "worker.py"]
        assert subprocess.run(words, capture_output=True, check=True).stderr == b"result\\n"
        assert "asyncio" not in sys.modules
        subprocess.run(words, check=True)
        """,
        name="parent.py",
        prelude="",
    )
    done = place.run(program, LOOPCANARY_CONSOLE="1")
    assert told_blocks(done.stderr) == 1
    assert place.culprits() == ["worker", "worker"]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_what_a_worker_imports_before_it_runs_a_loop_is_no_stall(place, method):
    slow_module = "import time\ntime.sleep(0.3)\n"
    (place.folder / "imported_by_main.py").write_text(slow_module)
    (place.folder / "imported_by_work.py").write_text(slow_module)
    program = place.program(
        f"""
        import multiprocessing
        import imported_by_main

        def work():
            import asyncio.subprocess, imported_by_work
            stall("worker")

        async def main():
            await asyncio.sleep(0)
            process = multiprocessing.get_context({method!r}).Process(target=work)
            process.start()
            await asyncio.to_thread(process.join)
            assert process.exitcode == 0

        if __name__ == "__main__":
            asyncio.run(main())
    """,
        prelude=PATIENTLY,
    )
    place.run(program)
    assert place.culprits() == ["worker"]
    modules = {"imported_by_main", "imported_by_work"}
    assert not [stall for stall in place.stalls() if any(name in str(stall.stacks) for name in modules)]


@pytest.mark.parametrize(
    ("keeper", "module"), [("1", "kept"), ("0", "engine")], ids=["kept", "in the program"]
)
def test_a_fork_while_another_thread_starts_the_engine(place, keeper, module):
    """The child shall not inherit a module that is half imported, and locked by a thread that it has not."""
    program = place.program("""
        importing, forking = threading.Event(), threading.Event()

        class Slow:
            def find_spec(name, path=None, target=None):
                if name == "loopcanary.assembly." + sys.argv[1]:
                    importing.set()
                    assert forking.wait(60)
                    time.sleep(0.5)  # longer than a fork waits for anything else

        sys.meta_path.insert(0, Slow)
        thread = threading.Thread(target=stall, args=("thread",))
        thread.start()
        assert importing.wait(60)
        forking.set()
        pid = os.fork()
        if pid == 0:
            stall("child")
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        thread.join()
    """)
    place.run(program, module, LOOPCANARY_KEEPER=keeper)
    assert place.culprits() == ["child", "thread"]


def test_a_fork_while_the_drain_imports(place):
    """SQLite is loaded with the first stall. Half of it would be what the child's own program finds."""
    (place.folder / "slow.py").write_text(
        "import time\nbegun.set()\ntime.sleep(0.5)  # longer than a fork waits for the drain\nvalue = 7\n",
        encoding="utf-8",
    )
    program = place.program("""
        import builtins, loopcanary
        builtins.begun = threading.Event()

        @loopcanary.on_issue
        def imports(issue):
            import slow
            return issue

        stall("parent")
        assert begun.wait(60)
        pid = os.fork()
        if pid == 0:
            import slow
            assert slow.value == 7
            stall("child", 1.0)  # on a busy host its watchdog is late
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """)
    place.run(program)
    assert place.culprits() == ["child", "parent"]
