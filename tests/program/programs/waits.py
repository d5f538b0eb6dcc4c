"""Waits for ever in one callback, for something that has a name, and says on stdout what that is.

    waits.py KIND FOLDER

One line of JSON: what the wait must be told as, and after which moment of the monotonic clock it is the only
one to come. FOLDER is for files of the program's own.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import io
import json
import logging
import os
import pty
import queue
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(sys.argv[2])
NEVER = threading.Event()


def ready(**facts):
    sys.stdout.write(json.dumps({"after_ns": time.monotonic_ns(), **facts}) + "\n")
    sys.stdout.flush()


def keeps(take):
    """A thread that runs `take(taken)`, a function that calls `taken` once it has what the loop wants."""
    is_taken = threading.Event()
    keeper = threading.Thread(target=take, args=(is_taken.set,), name="keeper", daemon=True)
    keeper.start()
    is_taken.wait()
    return keeper.native_id


# ---- locks ---------------------------------------------------------------------------------------


def rlock():
    lock = threading.RLock()

    def keep_recursive(taken):
        lock.acquire()
        taken()
        NEVER.wait()

    ready(lock="RLock", proof="owner", tid=keeps(keep_recursive), function="keep_recursive")
    lock.acquire()


def rlock_in_with():
    lock = threading.RLock()

    def keep_recursive(taken):
        with lock:
            again(taken)

    def again(taken):
        with lock:
            taken()
            NEVER.wait()

    tid = keeps(keep_recursive)
    ready(lock="RLock", proof="owner", tid=tid, function="keep_recursive", taken_by="keep_recursive")
    with lock:
        pass


def lock_in_with():
    lock = threading.Lock()

    def keep_plain(taken):
        with Path(os.devnull).open(), lock:
            try:
                below(taken)
            finally:
                taken()

    def below(taken):
        taken()
        NEVER.wait()

    ready(lock="lock", proof="with", tid=keeps(keep_plain), function="keep_plain")
    with lock:
        pass


def lock_with_timeout():
    locks = [threading.Lock() for _ in range(3)]

    def keep_plain(taken):
        with locks[0], locks[1], locks[2]:
            taken()
            NEVER.wait()

    ready(lock="lock", proof="with", tid=keeps(keep_plain), function="keep_plain")
    locks[1].acquire(timeout=1e6)


def lock_by_bound_method():
    lock = threading.Lock()
    acquire = lock.acquire

    def keep_plain(taken):
        with lock:
            taken()
            NEVER.wait()

    ready(lock="lock", proof="with", tid=keeps(keep_plain), function="keep_plain")
    acquire()


def lock_held_somehow():
    lock = threading.Lock()
    lock.acquire()
    ready(lock="lock", proof="none")
    lock.acquire()


def lock_of_two_waiters():
    """Those who wait in `with` as well do not hold it."""
    lock = threading.Lock()

    def wait_too():
        with lock:
            pass

    lock.acquire()
    threading.Thread(target=wait_too, daemon=True).start()
    ready(lock="lock", proof="none")
    with lock:
        pass


def lock_that_others_wait_for():
    lock = threading.Lock()

    def keep_plain(taken):
        with lock:
            taken()
            NEVER.wait()

    def wait_too():
        with lock:
            pass

    keeps(keep_plain)
    others = [threading.Thread(target=wait_too, name=f"waiter-{n}", daemon=True) for n in range(3)]
    for other in others:
        other.start()
    ready(tids=[other.native_id for other in others])
    with lock:
        pass


def lock_of_closed_block():
    """A thread has left its block, in a frame that is still there; the lock is held by acquire."""
    lock = threading.Lock()

    def stood_in_it(taken):
        for _ in range(3):
            with lock:
                pass
        taken()
        NEVER.wait()

    keeps(stood_in_it)
    lock.acquire()
    ready(lock="lock", proof="none")
    with lock:
        pass


def lock_of_condition():
    """A thread waits for a condition in a block of the lock, and so does not hold it."""
    lock = threading.Lock()
    condition = threading.Condition(lock)

    def wait_in_block(taken):
        with lock:
            taken()
            condition.wait()

    keeps(wait_in_block)
    lock.acquire()
    ready(lock="lock", proof="none")
    lock.acquire()


def lock_of_itself():
    lock = threading.Lock()
    ready(lock="lock", proof="with", tid=threading.get_native_id(), function="lock_of_itself")
    with lock:
        lock.acquire()


@contextmanager
def holding(lock):
    with lock:
        yield


def lock_of_itself_by_managers():
    lock = threading.Lock()
    with holding(lock):
        ready(lock="lock", proof="with", tid=threading.get_native_id(), function="lock_of_itself_by_managers")
        with holding(lock):
            pass


def mutex_of_queue():
    jobs = queue.Queue()

    def keep_mutex(taken):
        with jobs.mutex:
            taken()
            NEVER.wait()

    ready(lock="lock", proof="with", tid=keeps(keep_mutex), function="keep_mutex")
    jobs.qsize()


def lock_of_logging():
    class Stuck(io.StringIO):
        def write(self, text):
            if threading.current_thread().name == "keeper":
                self.taken()
                NEVER.wait()
            return len(text)

    stream = Stuck()
    log = logging.getLogger("shop")
    log.addHandler(logging.StreamHandler(stream))

    def keep_logging(taken):
        stream.taken = taken
        log.warning("first")

    # Since 3.13 in a `with` of its own.
    handle = "handle" if sys.version_info >= (3, 13) else None
    ready(lock="RLock", proof="owner", tid=keeps(keep_logging), function="keep_logging", taken_by=handle)
    log.warning("second")


def empty_queue():
    jobs = queue.Queue()
    ready(lock="lock", proof="none")
    jobs.get()


def thread():
    def work(taken):
        taken()
        NEVER.wait()

    is_taken = threading.Event()
    worker = threading.Thread(target=work, args=(is_taken.set,), daemon=True)
    worker.start()
    is_taken.wait()
    ready(lock="thread", proof="owner", tid=worker.native_id, function="work")
    worker.join()


def import_lock():
    folder = FOLDER / "package_of_waits"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "slow.py").write_text("import __main__\n__main__.LOADING.set()\n__main__.NEVER.wait()\n")
    sys.path.insert(0, str(FOLDER))
    loader = threading.Thread(target=importlib.import_module, args=("package_of_waits.slow",), daemon=True)
    loader.start()
    LOADING.wait()
    ready(
        lock="import lock of package_of_waits.slow",
        proof="with",
        tid=loader.native_id,
        function="_find_and_load_unlocked",
    )
    import package_of_waits.slow  # noqa: F401


LOADING = threading.Event()


def not_a_lock_of_ours():
    """A futex of the C library's."""
    import ctypes

    semaphore = ctypes.create_string_buffer(64)
    library = ctypes.CDLL(None)
    library.sem_init(semaphore, 0, 0)
    lock = threading.Lock()
    with lock:
        ready()
        library.sem_wait(semaphore)


def not_the_lock_of_the_block():
    """The same, while another thread waits for the block's lock."""
    import ctypes

    semaphore = ctypes.create_string_buffer(64)
    library = ctypes.CDLL(None)
    library.sem_init(semaphore, 0, 0)
    lock = threading.Lock()

    def want(taken):
        taken()
        with lock:
            pass

    with lock:
        keeps(want)
        ready()
        library.sem_wait(semaphore)


# ---- files -------------------------------------------------------------------------------------------


def fifo_read():
    path = FOLDER / "fifo"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    ready(target="pipe", name=str(path))
    os.read(descriptor, 1)


def fifo_open():
    path = FOLDER / "fifo größe"
    os.mkfifo(path)
    ready(target="file", name=str(path))
    path.open()


def fifo_open_below_folder():
    os.mkfifo(FOLDER / "fifo")
    folder = os.open(FOLDER, os.O_RDONLY)
    ready(target="file", name=f"{FOLDER}/fifo")
    os.open("fifo", os.O_RDONLY, dir_fd=folder)


def locked_file():
    path = FOLDER / "locked"
    with path.open("w") as ours, path.open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        ready(target="file", name=str(path))
        fcntl.flock(ours, fcntl.LOCK_EX)


def terminal():
    _, slave = pty.openpty()
    ready(target="terminal", name=os.ttyname(slave))
    os.read(slave, 1)


def plain_pipe():
    reader, _ = os.pipe()
    ready(target="pipe", name=str(Path(f"/proc/self/fd/{reader}").readlink()))
    os.read(reader, 1)


# ---- sockets --------------------------------------------------------------------------------------------


def listener(family=socket.AF_INET, host="127.0.0.1", **more):
    return socket.create_server((host, 0), family=family, **more)


def address_of(server):
    host, port = server.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def receive():
    with listener() as server, socket.create_connection(server.getsockname()) as client:
        ready(target="socket", name=address_of(server))
        client.recv(1)


def receive_with_timeout():
    server = listener(socket.AF_INET6, "::1")
    with server, socket.create_connection(server.getsockname()[:2], timeout=1e6) as client:
        ready(target="socket", name=address_of(server))
        client.recv(1)


def select_one():
    with listener() as server, socket.create_connection(server.getsockname()) as client:
        ready(target="socket", name=address_of(server))
        select.select([client], [], [client])


def epoll_one():
    with listener() as server, socket.create_connection(server.getsockname()) as client:
        epoll = select.epoll()
        epoll.register(client, select.EPOLLIN)
        ready(target="socket", name=address_of(server))
        epoll.poll()


def select_two():
    with listener() as server, listener() as other:
        clients = [socket.create_connection(each.getsockname()) for each in (server, other)]
        ready()
        select.select(clients, [], [])


def full(server):
    """Nobody accepts, and there is no room for more."""
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(server.getsockname())
        CLIENTS.append(client)


CLIENTS = []


def connect():
    with listener(backlog=0) as server:
        full(server)
        ready(target="socket", name=address_of(server))
        socket.socket().connect(server.getsockname())


def connect_with_timeout():
    with listener(backlog=0) as server:
        full(server)
        ready(target="socket", name=address_of(server))
        socket.create_connection(server.getsockname(), timeout=1e6)


def accept():
    with listener() as server:
        ready(target="socket", name=f"bound to {address_of(server)}")
        server.accept()


def unix_receive():
    path = str(FOLDER / "socket")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        ready(target="socket", name=path)
        client.recv(1)


# ---- children ----------------------------------------------------------------------------------------


class Started(subprocess.Popen):
    """That the child runs is a wait of its own: for a pipe that it closes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        ready(target="child", name="sleep 1000", is_child=True)


def child():
    subprocess.Popen = Started
    subprocess.run(["sleep", "1000"], check=False)


def child_with_one_pipe():
    subprocess.Popen = Started
    subprocess.run(["sleep", "1000"], check=False, stdout=subprocess.PIPE)


def child_with_two_pipes():
    subprocess.Popen = Started
    subprocess.run(["sleep", "1000"], check=False, capture_output=True)


def any_child():
    subprocess.Popen(["sleep", "1000"])
    ready(target="child", name="sleep 1000", is_child=True)
    os.wait()


def any_of_two_children():
    for _ in range(2):
        subprocess.Popen(["sleep", "1000"])
    ready()
    os.wait()


async def main(wait):
    asyncio.get_running_loop().call_soon(wait)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(main(globals()[sys.argv[1]]))
