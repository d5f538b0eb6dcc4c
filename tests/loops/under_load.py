"""Installs and uninstalls in a thread, again and again, while what is hooked is at work in others.

    under_load.py LOAD CYCLES STORE

The load is one of the zoo's loops (ZOO_LOOP names it), or another function of LOADS. In the end everything
must be as it was, attributes of the modules that are patched, hooks in libraries, threads; the load goes on.
"""

from __future__ import annotations

import asyncio
import builtins
import gc
import importlib
import os
import socket
import sys
import threading
import time
import traceback
import types
from pathlib import Path

import loopcanary
from loopcanary import _native

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

PATCHED = {
    *("asyncio", "uvloop", "trio", "gevent", "twisted", "pygame", "tkinter", "gi", "flask", "werkzeug"),
    *("os", "posix", "threading", "subprocess", "signal", "socket", "_socket", "selectors"),
    *("builtins", "sys", "importlib", "atexit"),
}
"""Packages whose functions are compared. Qt's are hooked in its own tables, and too many."""


class Load:
    """How often the load got on, and whether it shall end."""

    def __init__(self):
        self.ticks = 0
        self.is_over = False

    def tick(self):
        """One piece of work is done; now and then one is a stall."""
        self.ticks += 1
        if self.ticks % 40 == 0:
            time.sleep(0.03)

    def goes_on(self, count):
        """Waits until the load has got on by that much."""
        target = self.ticks + count
        while self.ticks < target:
            time.sleep(0.0005)


# ---- loads: called in the main thread, until the load is over ----------------------------------------


def in_threads(count, work):
    """The work in so many threads; what it raises ends the program."""

    def guarded():
        try:
            work()
        except BaseException:  # noqa: BLE001 - it ends the program
            give_up()

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def loop(load):
    """The zoo's loop in this thread."""
    from zoo.loops import host

    on = host()

    async def main():
        while not load.is_over:
            load.tick()
            await on.pause(0.001)

    on.run(main)


def loops_in_threads(load):
    """Loops of all kinds that may run in any thread."""

    async def main():
        while not load.is_over:
            load.tick()
            await asyncio.sleep(0.0005)

    async def main_of_trio():
        while not load.is_over:
            load.tick()
            await trio.sleep(0.0005)

    def main_of_gevent():
        while not load.is_over:
            load.tick()
            gevent.sleep(0.0005)

    runs = [lambda: asyncio.run(main())]
    with_uvloop, trio, gevent = map(imported, ("uvloop", "trio", "gevent"))
    if with_uvloop:
        runs.append(lambda: with_uvloop.run(main()))
    if trio:
        runs.append(lambda: trio.run(main_of_trio))
    if gevent:
        runs.append(main_of_gevent)
    in_threads(2 * len(runs), lambda: runs.append(runs.pop(0)) or runs[0]())


REQUEST, ANSWER = b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"


def answers(load):
    """HTTP/1 on sockets of Python's, by threads and by loops."""
    loops = [asyncio.run, (imported("uvloop") or asyncio).run]
    works = [lambda: by_threads(load)] * 2 + [lambda run=run: run(by_a_loop(load)) for run in loops]
    in_threads(len(works), lambda: works.pop()())  # noqa: PLW0108 - each thread has its own


def by_threads(load):
    """One asks, another answers, until it is asked nothing: each connection that was made is served."""

    def serve(server):
        is_asked = True
        while is_asked:
            is_asked = False
            connection, _ = server.accept()
            with connection:
                while connection.recv(4096):
                    is_asked = True
                    connection.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        while not load.is_over:
            with socket.create_connection(server.getsockname()) as client:
                for _ in range(5):
                    client.sendall(REQUEST)
                    assert client.recv(4096) == ANSWER
                load.tick()
        socket.create_connection(server.getsockname()).close()
        serving.join()


async def by_a_loop(load):
    """The loop asks and answers; none is left in the middle of an answer."""
    served = asyncio.Queue()

    async def serve(reader, writer):
        while await reader.readline() == REQUEST[:16]:
            await reader.readline()
            writer.write(ANSWER)
        writer.close()
        await served.put(None)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()[:2]
    while not load.is_over:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(REQUEST)
        assert await reader.readexactly(len(ANSWER)) == ANSWER
        writer.close()
        await served.get()
        load.tick()
    server.close()


def gobject_signals(load):
    """Signals with handlers, emitted by GLib's loop and by other threads."""
    from gi.repository import GObject

    class Emits(GObject.GObject):
        @GObject.Signal
        def beep(self):
            """A handler of its own."""

    def emit():
        thing, seen = Emits(), []
        thing.connect("beep", seen.append)
        while not load.is_over:
            thing.emit("beep")
            load.tick()
        assert seen

    threads = threading.Thread(target=in_threads, args=(2, emit))
    threads.start()
    loop(load)
    threads.join()


def imports(load):
    """Modules that are imported and dropped, those that a probe waits for among them."""

    folder = Path(sys.argv[3]).parent
    names = [f"module_{number}" for number in range(3)]
    for name in names:
        (folder / f"{name}.py").write_text("value = 1\n", encoding="utf-8")
    importlib.invalidate_caches()  # of two threads at once one may raise KeyError, in CPython 3.11

    def work():
        name = names.pop()
        while not load.is_over:
            assert importlib.import_module(name).value == 1
            del sys.modules[name]
            load.tick()

    sys.path.insert(0, str(folder))
    in_threads(len(names), work)


def collections(load):
    """Garbage, which any thread collects."""

    def work():
        while not load.is_over:
            cycle = []
            cycle.append(cycle)
            del cycle
            gc.collect(0)
            load.tick()

    in_threads(3, work)


def forks(load):
    """Children that run Python, beside threads with loops."""

    async def main():
        while not load.is_over:  # noqa: ASYNC110 - timers are what it is about
            await asyncio.sleep(0.001)

    loops = threading.Thread(target=in_threads, args=(2, lambda: asyncio.run(main())))
    loops.start()
    while not load.is_over:
        child = os.fork()
        if child == 0:
            os._exit(0 if sum(range(10)) == 45 else 1)
        assert os.waitpid(child, 0)[1] == 0
        load.tick()
    loops.join()


def work(load):
    """What the program says of its own work; locks, which the watchdog looks at."""
    lock = threading.Lock()

    def named():
        while not load.is_over:
            with loopcanary.watch("work"), loopcanary.scene("scene"), loopcanary.expect("1ms"), lock:
                load.tick()

    in_threads(4, named)


def code(load):
    """Code that is made and dropped, while stacks are read."""

    def made():
        while not load.is_over:
            space = {}
            exec(compile("def made():\n    return sum(range(100))", "<made>", "exec"), space)
            with loopcanary.watch("made"):
                assert space["made"]() == 4950
                load.tick()

    in_threads(4, made)


def requests(load):
    """Flask's, in threads."""
    import flask

    application = flask.Flask("shop")
    application.add_url_rule("/orders/<number>", view_func=lambda number: number, endpoint="orders")

    def ask():
        client = application.test_client()
        while not load.is_over:
            assert client.get("/orders/7").data == b"7"
            load.tick()

    in_threads(3, ask)


def twisted(load):
    """Its reactor, with calls from another thread."""
    from twisted.internet import reactor

    def call():
        load.tick()
        if load.is_over:
            reactor.stop()
        else:
            reactor.callLater(0.0005, call)

    def calls():
        while not load.is_over:
            reactor.callFromThread(int)
            time.sleep(0.0005)

    thread = threading.Thread(target=calls)
    reactor.callWhenRunning(thread.start)
    reactor.callWhenRunning(call)
    reactor.run(installSignalHandlers=False)
    thread.join()


LOADS = {
    each.__name__: each
    for each in (
        *(loop, loops_in_threads, answers, gobject_signals, imports, collections),
        *(forks, work, code, requests, twisted),
    )
}


def imported(name):
    """The module, None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# ---- what must be as it was --------------------------------------------------------------------------


def functions():
    """(owner, name): function, of all modules and classes that may be patched."""
    modules = [
        module
        for module in list(sys.modules.values())
        if isinstance(module, types.ModuleType) and module.__name__.partition(".")[0] in PATCHED
    ]
    owners = {module.__name__: module for module in modules}
    for module in modules:
        classes = [value for value in list(vars(module).values()) if isinstance(value, type)]
        owners |= {f"{one.__module__}.{one.__qualname__}": one for one in classes}
    return {
        (place, name): value
        for place, owner in owners.items()
        for name, value in dict(vars(owner)).items()
        if is_function(value)
    }


def is_function(value):
    """Whether it can be called. Modules that lazily make their parts answer with errors, too."""
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))


def marks():
    """What else is left where hooks are."""
    return {
        "calls": [line for line in _native.patches().split(b"\n") if line.startswith(b"+call")],
        "collections": list(gc.callbacks),
        "imports": [each for each in sys.meta_path if type(each).__module__.startswith("loopcanary")],
        "import": builtins.__import__,
        "runs": _native.is_running(),
        "threads": [each.name for each in threading.enumerate() if "loopcanary" in each.name],
    }


def differences(before, after):
    """Functions that are others than before, or ours."""
    return {
        key: (before.get(key), value)
        for key, value in after.items()
        if before.get(key, value) is not value or (key not in before and is_ours(value))
    }


def is_ours(function):
    """Whether loopcanary has put it there."""
    return str(getattr(function, "__module__", "")).startswith("loopcanary")


def give_up():
    """Ends the program: its other threads would go on."""
    traceback.print_exc()
    os._exit(1)


def come_and_go(load, cycles, store):
    """In a thread of its own."""
    try:
        load.goes_on(20)
        before, marks_before = functions(), marks()
        for number in range(cycles):
            loopcanary.install(store=store, console="off", engine="native", threshold="20ms")
            load.goes_on(number % 3)
            loopcanary.uninstall()
            load.goes_on(number % 2)
        assert marks() == marks_before, (marks_before, marks())
        assert not differences(before, functions()), differences(before, functions())
        load.goes_on(20)
        load.is_over = True
    except BaseException:  # noqa: BLE001 - it ends the program
        give_up()


def main():
    """The load here, the cycles in a thread."""
    name, cycles, store = sys.argv[1:]
    sys.setswitchinterval(1e-4)
    load = Load()
    thread = threading.Thread(target=come_and_go, args=(load, int(cycles), store), name="cycles")
    thread.start()
    try:
        LOADS[name](load)
    except BaseException:  # noqa: BLE001 - the cycles wait for the load
        give_up()
    thread.join()
    print(load.ticks)  # noqa: T201 - its result


if __name__ == "__main__":
    main()
