"""Remedies by what was called. Data: to add one, add an entry; the first that fits is taken.

`names`: dotted names of calls as they are usually written; a call fits whose name is the same, or ends
with it after a dot, or is its last part where `causes` fits too (`from time import sleep`).
`modules`: packages or modules; a stall fits that reached one of their frames below the culprit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopcanary.model import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One way out. `{call}` stands for the call as written."""

    asyncio: str
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    causes: frozenset[Cause] = frozenset()
    """Only for these causes; empty: for any."""
    elsewhere: str | None = None
    """For loops other than asyncio's; None: the one of the cause."""


_CPU = frozenset({Cause.CPU, Cause.NATIVE_CPU, Cause.UNKNOWN})
_LOCK = frozenset({Cause.LOCK, Cause.UNKNOWN})

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        names=("time.sleep",),
        causes=frozenset({Cause.SLEEP, Cause.UNKNOWN}),
        asyncio="Replace `{call}` with `await asyncio.sleep(...)`: it lets the loop run meanwhile.",
        elsewhere="Replace `{call}` with a timer of the loop: it lets the loop run meanwhile.",
    ),
    Remedy(
        names=("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyname_ex"),
        asyncio="Resolve names with `await loop.getaddrinfo(...)` in place of `{call}`.",
    ),
    Remedy(
        names=("socket.gethostbyaddr", "socket.getnameinfo", "socket.getfqdn"),
        asyncio="Resolve addresses with `await loop.getnameinfo(...)` in place of `{call}`.",
    ),
    Remedy(
        names=("subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output"),
        asyncio="Use `await asyncio.create_subprocess_exec(...)` and `await process.communicate()`.",
    ),
    Remedy(
        names=("os.system", "os.popen"),
        asyncio="Use `await asyncio.create_subprocess_shell(...)` in place of `{call}`.",
    ),
    Remedy(
        names=("os.waitpid", "os.wait", "process.wait", "proc.communicate", "process.communicate"),
        modules=("subprocess",),
        asyncio="Start the child with `asyncio.create_subprocess_exec` and await `process.wait()`.",
    ),
    Remedy(
        modules=("multiprocessing",),
        names=("pool.map", "pool.starmap", "pool.apply"),
        asyncio="Use `await loop.run_in_executor(process_pool, ...)` in place of waiting for the pool.",
    ),
    Remedy(
        modules=("requests",),
        names=("requests.get", "requests.post", "requests.put", "requests.delete", "requests.request"),
        asyncio="Use `httpx.AsyncClient` (its API is that of requests), or `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("urllib.request",),
        names=("urllib.request.urlopen", "request.urlopen", "urlopen"),
        asyncio="Use `httpx.AsyncClient` or aiohttp, or `await asyncio.to_thread(urlopen, ...)`.",
    ),
    Remedy(
        modules=("httpx",),
        names=("httpx.get", "httpx.post", "httpx.request"),
        causes=frozenset({Cause.NETWORK_IO, Cause.DNS, Cause.UNKNOWN}),
        asyncio="Use `httpx.AsyncClient` and await its calls: `httpx.Client` blocks.",
    ),
    Remedy(
        modules=("http.client", "urllib3"),
        asyncio="Use an async client such as `httpx.AsyncClient`, or `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("boto3", "botocore"),
        asyncio="Use aioboto3, or run the call with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("redis",),
        asyncio="Use `redis.asyncio.Redis`: it has the same methods, awaited.",
    ),
    Remedy(
        modules=("pymysql", "MySQLdb", "mysql"),
        asyncio="Use asyncmy or aiomysql, or run the query with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("psycopg2", "psycopg"),
        names=("psycopg2.connect",),
        asyncio="Use `psycopg.AsyncConnection` or asyncpg, or `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("pymongo",),
        asyncio="Use `pymongo.AsyncMongoClient`: it has the same methods, awaited.",
    ),
    Remedy(
        modules=("sqlalchemy",),
        asyncio="Use `create_async_engine` and `AsyncSession` of sqlalchemy.ext.asyncio.",
    ),
    Remedy(
        modules=("django.db",),
        asyncio="Use the ORM's async methods (`aget`, `acreate`), or `sync_to_async`.",
    ),
    Remedy(
        names=("sqlite3.connect", "cursor.execute", "connection.execute", "conn.execute", "conn.commit"),
        asyncio="Use aiosqlite, or run the query with `await asyncio.to_thread(...)`.",
        causes=frozenset({Cause.DISK_IO, Cause.LOCK, Cause.NATIVE_CPU}),
    ),
    Remedy(
        names=("future.result", "fut.result", "concurrent.futures.wait"),
        modules=("concurrent.futures",),
        causes=_LOCK,
        asyncio="Await the future: `await asyncio.wrap_future(future)`.",
    ),
    Remedy(
        names=("queue.get", "queue.put", "queue.join"),
        modules=("queue",),
        causes=_LOCK,
        asyncio="Use `asyncio.Queue` inside the loop; from a thread, `loop.call_soon_threadsafe`.",
    ),
    Remedy(
        names=("thread.join", "Thread.join"),
        causes=_LOCK,
        asyncio="Wait with `await asyncio.to_thread(thread.join)`, or start the work by `asyncio.to_thread`.",
    ),
    Remedy(
        names=("lock.acquire", "event.wait", "condition.wait", "cond.wait", "barrier.wait"),
        modules=("threading",),
        causes=_LOCK,
        asyncio="Use asyncio's Lock, Event or Condition inside the loop, and hold thread locks only briefly.",
    ),
    Remedy(
        names=("json.loads", "json.dumps", "json.load", "json.dump"),
        modules=("json",),
        causes=_CPU,
        asyncio="Use a faster parser (orjson, msgspec), or smaller documents; "
        "`asyncio.to_thread` does not help, since the call holds the GIL.",
    ),
    Remedy(
        names=("re.match", "re.search", "re.fullmatch", "re.sub", "re.findall", "pattern.match"),
        modules=("re",),
        causes=_CPU,
        asyncio="Make the pattern free of nested repetition and bound its input; the call holds the GIL, so "
        "only a process (`ProcessPoolExecutor`) takes it off the loop.",
    ),
    Remedy(
        names=("pickle.loads", "pickle.dumps", "copy.deepcopy"),
        modules=("pickle", "copy"),
        causes=_CPU,
        asyncio="Copy or serialise less at a time; the call holds the GIL, so a thread does not help.",
    ),
    Remedy(
        names=(
            *("hashlib.pbkdf2_hmac", "hashlib.scrypt", "bcrypt.hashpw", "bcrypt.checkpw", "zlib.compress"),
            *("zlib.decompress", "gzip.compress", "gzip.decompress", "lzma.compress", "bz2.compress"),
        ),
        modules=("bcrypt", "argon2", "passlib", "gzip", "zipfile", "tarfile"),
        causes=_CPU,
        asyncio="Run it with `await asyncio.to_thread(...)`: it releases the GIL while it works.",
    ),
    Remedy(
        modules=("numpy", "pandas", "polars", "PIL", "cv2", "sklearn", "torch"),
        causes=_CPU,
        asyncio="Run it with `await asyncio.to_thread(...)` if it releases the GIL, else in a process pool.",
    ),
    Remedy(
        names=("input", "getpass.getpass"),
        asyncio="Read the terminal with `await asyncio.to_thread(input)`.",
    ),
    Remedy(
        modules=("logging",),
        causes=frozenset({Cause.DISK_IO, Cause.NETWORK_IO, Cause.LOCK}),
        asyncio="Log through `logging.handlers.QueueHandler` and a `QueueListener` thread.",
    ),
)

BY_CAUSE: Mapping[Cause, str] = {
    Cause.SLEEP: "Wait with `await asyncio.sleep(...)`.",
    Cause.DNS: "Resolve names with `await loop.getaddrinfo(...)`.",
    Cause.SUBPROCESS: "Use `await asyncio.create_subprocess_exec(...)`.",
    Cause.NETWORK_IO: "Use an async client, or run the call with `await asyncio.to_thread(...)`.",
    Cause.DISK_IO: "Run the file work with `await asyncio.to_thread(...)`, or use aiofiles.",
    Cause.LOCK: "Wait without blocking the loop: an asyncio primitive, or `await asyncio.to_thread(...)`.",
    Cause.IMPORT: "Import the module when the program starts, before the loop runs.",
    Cause.NATIVE_CPU: "Run it by `asyncio.to_thread` if it releases the GIL, else in a process pool.",
    Cause.CPU: "Cut the work up with `await asyncio.sleep(0)` between the pieces, or use a process pool.",
    Cause.GC: "Call `gc.freeze()` after start-up, raise `gc.set_threshold`; look for what allocates so much.",
    Cause.GIL: "Make the thread that holds the GIL do less at a time, or move its work to a process.",
    Cause.BURST: "Spread the work over turns: bound what is scheduled at once, such as with a semaphore.",
    Cause.HOST: "Not the code: give the process more CPU, or look at its limits and neighbours.",
}

ELSEWHERE: Mapping[Cause, str] = {
    Cause.SLEEP: "Use a timer of the loop in place of sleeping.",
    Cause.DNS: "Resolve the name on another thread.",
    Cause.SUBPROCESS: "Wait for the child on another thread, or by a signal of the loop.",
    Cause.NETWORK_IO: "Do it on another thread and hand the result back to the loop.",
    Cause.DISK_IO: "Do the file work on another thread and hand the result back to the loop.",
    Cause.LOCK: "Do not wait for threads here: let them hand their result to the loop.",
    Cause.NATIVE_CPU: "Run it on another thread if it releases the GIL, else in another process.",
    Cause.CPU: "Cut the work into pieces that the loop runs one by one, or run it in another process.",
}
