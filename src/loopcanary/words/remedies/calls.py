"""Remedies by call and by module, of what Python itself brings, in asyncio's words: one line a row. The rows of
packages are in words.libraries.

The first row that fits is taken, so the narrower one comes first. A new row needs a story in
tests/diagnosis/test_remedies.py.
"""

from __future__ import annotations

from loopcanary.model import Cause
from loopcanary.words.remedies.remedy import (
    ANY,
    COMPUTING,
    DISK,
    LOADING,
    LOCKS,
    NAMES,
    SLEEP,
    WAITING,
    Needs,
    Remedy,
    Way,
    call,
    only,
)


def _proved(id_: str, causes: frozenset[Cause], through: str, calls: str, text: str) -> Remedy:
    return Remedy(id_, text, causes=causes, calls=tuple(calls.split()), needs=Needs(tuple(through.split())))


_SOCKET_CALLS = (
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_sendall",
    "sock_accept",
    "sock_connect",
)
_SOCKETS = " ".join(
    f"asyncio.selector_events:BaseSelectorEventLoop.{begin}{name}"
    for name in _SOCKET_CALLS
    for begin in ("", "_")
)
_PROCESS_POOL = "Use `await loop.run_in_executor(process_pool, ...)` in place of waiting for the process."

# fmt: off
CALLS: tuple[Remedy, ...] = (
    # By proof: id, causes, places below the culprit, calls, text.
    _proved("tls-context", LOADING, "ssl:create_default_context httpx._config:create_ssl_context aiohttp.connector:_make_ssl_context", "", "Make the client, or its TLS context, once, before the loop serves, and use it again (httpx: `verify=context`): each new context reads and parses all certificates."),
    _proved("re-compile", COMPUTING, "re._compiler re._parser sre_compile sre_parse", "re.compile re.match re.search re.fullmatch re.sub re.findall re.finditer re.split", "Compile patterns once, when the program starts, and keep them: here they are compiled, which takes the time."),
    _proved("blocking-socket", WAITING, _SOCKETS, "", "Call `setblocking(False)` on the socket before the loop gets it: a call of the loop itself waits in it."),
    _proved("tk-text", COMPUTING, "tkinter:Text.see tkinter:Text.insert tkinter:Text.index tkinter:Text.yview", "", "Break long lines before they are shown, and insert much text in parts (`widget.after`): a Text widget lays out each line as a whole, slowly if it has thousands of characters."),
    Remedy("mp-pool", _PROCESS_POOL, Way.HANDOVER, needs=Needs(("multiprocessing.pool:Pool.join",))),
    _proved("mp-join", ANY, "multiprocessing.process:BaseProcess.join", "", "Read what the process puts into queues and pipes before `join`: it cannot end before that. The loop can watch its end, too: `process.sentinel` is a descriptor (on Windows a handle) that is ready then."),
    # id, way, causes, calls, modules, text
    # Databases and caches.
    call("sqlite-writers", Way.THREAD, only(Cause.SLEEP, Cause.LOCK), "*.execute *.executemany *.executescript *.commit *.fetchall", "sqlite3 sqlite_utils", "Keep the other writer's transaction short, begin writing by `BEGIN IMMEDIATE`, and wait for it with `await asyncio.to_thread(...)`."),
    call("sqlite3", Way.THREAD, only(Cause.NATIVE_CPU, Cause.DISK_IO), "sqlite3.connect *.execute *.executemany *.executescript *.commit *.fetchall", "sqlite3 sqlite_utils", "Use aiosqlite, or run the query with `await asyncio.to_thread(...)`, on a connection that was made there, or with `check_same_thread=False`."),
    call("cursors", Way.CLIENT, WAITING, "*.execute *.executemany *.fetchall *.fetchone *.fetchmany *.commit", "", "Use the database's asyncio driver (asyncpg, psycopg's AsyncConnection, asyncmy), or `await asyncio.to_thread(...)`."),
    call("key-values", Way.THREAD, ANY, "shelve.open dbm.open", "dbm shelve lmdb plyvel diskcache", "Run the access with `await asyncio.to_thread(...)`: it reads and writes files."),
    # Waiting: time, threads, children, terminals and logs.
    call("time.sleep", Way.TIMER, SLEEP, "time.sleep", "", "Replace `{call}` with `await asyncio.sleep(...)`: it lets the loop run meanwhile."),
    call("concurrent.futures.wait", Way.HANDOVER, LOCKS, "concurrent.futures.wait futures.wait futures.as_completed as_completed", "", "Wrap each future by `asyncio.wrap_future` and await `asyncio.wait` or `asyncio.gather` of them."),
    call("executor.shutdown", Way.HANDOVER, LOCKS, "executor.shutdown pool.shutdown", "concurrent.futures.thread concurrent.futures.process", "Shut the executor down by `await loop.run_in_executor(None, executor.shutdown)`, or after the loop."),
    call("executor.map", Way.HANDOVER, LOCKS, "executor.map", "", "Submit with `loop.run_in_executor` and await `asyncio.gather` of the futures."),
    call("asyncio.run_coroutine_threadsafe", Way.HANDOVER, LOCKS, "asyncio.run_coroutine_threadsafe run_coroutine_threadsafe asyncio.run_coroutine_threadsafe.result run_coroutine_threadsafe.result", "", "Await the coroutine itself: on the loop's own thread, waiting for it here never ends."),
    call("concurrent.futures", Way.HANDOVER, LOCKS, "future.result fut.result f.result *.result future.exception", "concurrent.futures", "Await the future: `await asyncio.wrap_future(future)`."),
    call("queue", Way.HANDOVER, LOCKS, "queue.get queue.put queue.join q.get q.put", "queue", "Use `asyncio.Queue` inside the loop; from a thread, `loop.call_soon_threadsafe`."),
    call("mp-queues", Way.HANDOVER, ANY, "", "multiprocessing.queues multiprocessing.connection", "Wait for the other process on a thread: `await asyncio.to_thread(queue.get)`, or `asyncio.to_thread(queue.put, item)`."),
    call("mp-locks", Way.HANDOVER, LOCKS, "", "multiprocessing.synchronize", "Wait for the other process on a thread, with `await asyncio.to_thread(...)` of a function that takes the lock and releases it."),
    call("multiprocessing", Way.HANDOVER, ANY, "pool.join pool.map pool.starmap pool.apply", "multiprocessing", _PROCESS_POOL),
    call("thread.join", Way.HANDOVER, LOCKS, "thread.join Thread.join worker.join t.join", "", "Wait with `await asyncio.to_thread(thread.join)`, or start the work by `asyncio.to_thread`."),
    call("flock", Way.THREAD, only(Cause.SLEEP, Cause.LOCK, Cause.UNKNOWN), "fcntl.flock fcntl.lockf", "", "Take the file's lock with `await asyncio.to_thread(...)`, or try it with `LOCK_NB`, which does not wait."),
    call("signals", Way.THREAD, WAITING, "signal.sigtimedwait signal.sigwait signal.sigwaitinfo signal.pause", "", "Take signals by `loop.add_signal_handler(...)`: waiting for one blocks the loop."),
    call("event.wait", Way.HANDOVER, LOCKS, "event.wait ready.wait done.wait *.wait_for", "", "Use `asyncio.Event`, set from threads by `loop.call_soon_threadsafe(event.set)`."),
    call("semaphore.acquire", Way.HANDOVER, LOCKS, "semaphore.acquire sem.acquire", "", "Use `asyncio.Semaphore` inside the loop."),
    call("threading", Way.HANDOVER, LOCKS, "lock.acquire mutex.acquire condition.wait cond.wait barrier.wait *.acquire", "threading", "Use asyncio's Lock, Event or Condition inside the loop, and hold thread locks only briefly."),
    call("subprocess.run", Way.CHILD, ANY, "subprocess.run subprocess.call subprocess.check_call subprocess.check_output", "", "Use `await asyncio.create_subprocess_exec(...)`, or `create_subprocess_shell`, and `await process.communicate()`."),
    call("subprocess.getoutput", Way.CHILD, ANY, "subprocess.getoutput subprocess.getstatusoutput os.system os.popen", "", "Use `await asyncio.create_subprocess_shell(...)` in place of `{call}`."),
    call("os.fork", Way.CHILD, ANY, "os.fork os.forkpty pty.fork", "", "Fork before the program grows (a fork server), or start children with `posix_spawn`: a fork copies the page tables of all memory."),
    call("subprocess", Way.CHILD, ANY, "os.waitpid os.wait os.waitid process.wait proc.wait *.communicate", "subprocess", "Start the child with `asyncio.create_subprocess_exec` and await `process.wait()`."),
    call("qprocess", Way.CHILD, only(Cause.SUBPROCESS, Cause.UNKNOWN), "*.waitForStarted *.waitForFinished", "", "Use `await asyncio.create_subprocess_exec(...)` and `await process.wait()`."),
    call("input", Way.INPUT, ANY, "input getpass.getpass sys.stdin.readline sys.stdin.read click.prompt typer.prompt", "", "Read the terminal with `await asyncio.to_thread(...)`, or prompt_toolkit's `prompt_async`."),
    call("print", None, only(Cause.LOCK, Cause.DISK_IO, Cause.NETWORK_IO, Cause.SUBPROCESS, Cause.UNKNOWN), "print sys.stdout.write sys.stderr.write stdout.flush rich.print console.print", "", "The output is read slowly: print less, or through a queue that another thread writes out."),
    call("logging.handlers", None, only(Cause.DISK_IO, Cause.NETWORK_IO, Cause.DNS, Cause.SUBPROCESS, Cause.UNKNOWN), "", "logging.handlers", "Put `logging.handlers.QueueHandler` before this handler: a `QueueListener` thread then does its I/O."),
    call("logging-texts", None, COMPUTING, "", "logging structlog loguru", "Log less here, or shorter texts: this thread computes the text of each record."),
    call("logging", None, only(Cause.LOCK, Cause.DISK_IO, Cause.NETWORK_IO, Cause.SUBPROCESS), "", "logging", "Log through `logging.handlers.QueueHandler` and a `QueueListener` thread."),
    # Peers: HTTP, mail, sockets, names.
    call("urllib.request", Way.CLIENT, ANY, "urllib.request.urlopen request.urlopen urlopen urlretrieve", "urllib.request", "Use `httpx.AsyncClient` or aiohttp, or `await asyncio.to_thread(urlopen, ...)`."),
    call("smtplib", Way.CLIENT, WAITING, "smtp.sendmail smtp.send_message server.sendmail", "smtplib", "Use aiosmtplib, or send the mail with `await asyncio.to_thread(...)`."),
    call("imaplib", Way.CLIENT, WAITING, "", "imaplib poplib", "Use aioimaplib, or fetch the mail with `await asyncio.to_thread(...)`."),
    call("ftplib", Way.CLIENT, WAITING, "ftp.retrbinary ftp.storbinary", "ftplib telnetlib", "Use aioftp, or run the transfer with `await asyncio.to_thread(...)`."),
    call("xmlrpc", Way.CLIENT, WAITING, "", "xmlrpc suds", "Run the call with `await asyncio.to_thread(...)`: this protocol has no client for asyncio."),
    call("getaddrinfo", Way.RESOLVE, NAMES, "getaddrinfo socket.getaddrinfo socket.gethostbyname socket.gethostbyname_ex", "", "Resolve names with `await loop.getaddrinfo(...)` in place of `{call}`."),
    call("socket.gethostbyaddr", Way.RESOLVE, NAMES, "socket.gethostbyaddr socket.getnameinfo socket.getfqdn", "", "Resolve addresses with `await loop.getnameinfo(...)` in place of `{call}`."),
    call("http.client", Way.CLIENT, WAITING, "http.request pool.request pool.urlopen", "http.client urllib3 httplib2", "Use an async client such as `httpx.AsyncClient`, or `await asyncio.to_thread(...)`."),
    call("ssl", Way.CLIENT, WAITING, "ssl.wrap_socket *.do_handshake *.wrap_socket ssl.get_server_certificate", "ssl OpenSSL", "Open TLS connections with `await asyncio.open_connection(..., ssl=...)`."),
    call("socket.create_connection", Way.CLIENT, WAITING, "socket.create_connection sock.connect s.connect *.connect_ex", "", "Connect with `await asyncio.open_connection(...)`, or `await loop.sock_connect(...)`."),
    call("socket", Way.CLIENT, WAITING, "*.recv *.recv_into *.recvfrom *.sendall *.accept *.makefile", "socket socketserver", "Use asyncio's streams, or `await loop.sock_recv(...)` and `loop.sock_sendall(...)`."),
    call("select.select", Way.CLIENT, WAITING, "select.select select.poll selector.select", "", "Let the loop watch the descriptor: `loop.add_reader` and `loop.add_writer`."),
    # Files, archives and folders.
    call("os.fsync", Way.THREAD, DISK, "os.fsync os.fdatasync os.sync *.flush", "", "Sync with `await asyncio.to_thread(os.fsync, ...)`, once for many writes."),
    call("shutil", Way.THREAD, LOADING, "shutil.copyfile shutil.copy shutil.copytree shutil.rmtree shutil.move", "shutil", "Run `{call}` with `await asyncio.to_thread(...)`."),
    call("glob", Way.THREAD, LOADING, "os.listdir os.scandir os.walk glob.glob *.iterdir *.rglob *.glob", "glob fnmatch", "List folders with `await asyncio.to_thread(...)`: a large or remote one takes long."),
    call("path-objects", Way.THREAD, only(Cause.CPU), "", "pathlib", "Do the work on paths with `await asyncio.to_thread(...)`, or on plain texts (`os.scandir`, `os.path`): pathlib makes an object for each path."),
    call("path-names", Way.THREAD, only(Cause.CPU), "", "posixpath genericpath ntpath", "Do the work on paths with `await asyncio.to_thread(...)`, or keep the results: each path is split in Python."),
    call("os.stat", Way.THREAD, DISK, "os.stat os.lstat *.exists *.is_file *.is_dir os.access os.path.getsize", "", "Ask the file system with `await asyncio.to_thread(...)`: a network share answers late."),
    call("os.rename", Way.THREAD, DISK, "os.rename os.replace os.unlink os.remove *.unlink os.makedirs os.rmdir", "", "Make, rename and remove files with `await asyncio.to_thread(...)`."),
    call("pathlib", Way.THREAD, DISK, "*.read_text *.read_bytes *.write_text *.write_bytes", "pathlib", "Run `{call}` with `await asyncio.to_thread(...)`, or use `anyio.Path`."),
    call("tempfile", Way.THREAD, DISK, "tempfile.mkstemp tempfile.TemporaryDirectory tempfile.NamedTemporaryFile", "tempfile", "Make temporary files with `await asyncio.to_thread(...)`, or aiofiles' `tempfile`."),
    call("open", Way.THREAD, DISK, "open io.open codecs.open gzip.open", "", "Open the file with `await asyncio.to_thread(open, ...)`, or use aiofiles."),
    call("child.read", Way.WATCH, only(Cause.SUBPROCESS), "*.read *.readline *.readlines", "", "Read what the child prints on another thread (`await asyncio.to_thread(...)`), or start it with `asyncio.create_subprocess_exec` and await its `stdout.readline()`."),
    call("file.read", Way.THREAD, DISK, "*.read *.readline *.readlines os.read os.pread *.readinto os.sendfile", "", "Read the file with `await asyncio.to_thread(...)`, or use aiofiles."),
    call("file.write", Way.THREAD, DISK, "*.write *.writelines os.write os.pwrite *.truncate", "", "Write the file with `await asyncio.to_thread(...)`, or use aiofiles."),
    call("zipfile", Way.THREAD, LOADING, "zipfile.ZipFile tarfile.open *.extractall *.extract", "zipfile tarfile", "Pack and unpack with `await asyncio.to_thread(...)`."),
    call("mmap", Way.THREAD, DISK, "mmap.mmap *.msync", "mmap", "Touch mapped files on another thread, or have them read ahead (`madvise(MADV_WILLNEED)`)."),
    call("os.urandom", Way.THREAD, DISK, "os.urandom secrets.token_bytes random.SystemRandom", "", "Draw random bytes on another thread: at start-up the kernel may lack entropy."),
    # Computing in the standard library: parsing, hashing, packing, sorting.
    call("json-dumps", Way.PROCESS, COMPUTING, "json.dumps json.dump simplejson.dumps", "json.encoder simplejson.encoder", "Use a faster serialiser (orjson, msgspec), or smaller documents; `asyncio.to_thread` does not help, since the call holds the GIL."),
    call("json", Way.PROCESS, COMPUTING, "json.loads json.load simplejson.loads", "json simplejson", "Use a faster parser (orjson, msgspec), or smaller documents; `asyncio.to_thread` does not help, since the call holds the GIL."),
    call("re", Way.PROCESS, COMPUTING, "re.match re.search re.fullmatch re.sub re.findall re.split re.compile", "re regex", "Make the pattern free of nested repetition and bound its input; the call holds the GIL, so only a process (`ProcessPoolExecutor`) takes it off the loop."),
    call("patterns", Way.PROCESS, COMPUTING, "pattern.match regex.match *.fullmatch *.finditer *.findall PATTERN.search *.match", "", "Make the pattern free of nested repetition and bound its input; google-re2 never backtracks."),
    call("copy", Way.PIECES, COMPUTING, "copy.deepcopy copy.copy", "copy", "Copy less at a time, or share what does not change: a deep copy is Python code that holds the GIL."),
    call("pickle", Way.PROCESS, COMPUTING, "pickle.loads pickle.dumps pickle.load pickle.dump dill.loads cloudpickle.dumps", "pickle dill cloudpickle", "Copy or serialise less at a time; the call holds the GIL, so a thread does not help."),
    call("ast", Way.PROCESS, COMPUTING, "marshal.loads marshal.dumps ast.parse compile ast.literal_eval eval exec", "ast", "Compile once and keep the result, or do it in a process pool."),
    call("hashlib.pbkdf2_hmac", Way.THREAD, COMPUTING, "hashlib.pbkdf2_hmac hashlib.scrypt", "", "Run it with `await asyncio.to_thread(...)`: it releases the GIL while it works."),
    call("hashlib", Way.THREAD, COMPUTING, "hashlib.sha256 hashlib.sha1 hashlib.md5 hashlib.blake2b hashlib.file_digest *.hexdigest", "hashlib hmac", "Hash large data with `await asyncio.to_thread(...)`: beyond 2 KiB the GIL is released."),
    call("gzip", Way.THREAD, COMPUTING, "zlib.compress zlib.decompress gzip.compress gzip.decompress lzma.compress bz2.compress", "gzip bz2 lzma zlib", "Compress with `await asyncio.to_thread(...)`: it releases the GIL while it works."),
    call("csv", Way.PIECES, COMPUTING, "csv.reader csv.DictReader writer.writerows", "csv", "Read the rows in batches with `await asyncio.sleep(0)` between them, or in a process pool."),
    call("xml", Way.PROCESS, COMPUTING, "ET.parse ET.fromstring ElementTree.parse minidom.parseString xmltodict.parse", "xml xmltodict", "Parse large documents in a process pool, or with `iterparse` in pieces."),
    call("collections", Way.PROCESS, COMPUTING, "sorted *.sort sum min max list heapq.nlargest itertools.permutations", "", "The data is large: keep it sorted or summed as it grows (bisect, heapq), or use a process pool; the call holds the GIL."),
    call("digits", Way.PROCESS, only(Cause.NATIVE_CPU, Cause.UNKNOWN), "pow math.factorial math.comb int str", "", "Bound the numbers: those of so many digits take long. Or use gmpy2, or a process pool."),
    call("exact-numbers", Way.PROCESS, COMPUTING, "decimal.Decimal fractions.Fraction", "decimal _pydecimal _pylong fractions", "Bound the digits, use floats or gmpy2 where that does, or compute in a process pool: exact numbers are slow."),
    call("difflib", Way.PROCESS, COMPUTING, "difflib.SequenceMatcher difflib.unified_diff *.ratio *.get_matching_blocks", "difflib", "`difflib` takes quadratic time: bound its input, use rapidfuzz, or a process pool."),
    call("statistics", Way.PIECES, COMPUTING, "", "statistics", "The statistics module is exact and slow: use numpy, or `statistics.fmean`."),
    call("parsing", Way.PROCESS, COMPUTING, "", "email html textwrap configparser tomllib plistlib", "Parse the large document in a process pool, or in pieces with `await asyncio.sleep(0)` between them."),
    call("traceback", Way.PIECES, ANY, "traceback.format_exc traceback.format_exception inspect.getsource inspect.stack", "traceback inspect linecache", "Tracebacks and `inspect.stack()` read source files: take them seldom, or on another thread."),
    call("base64", Way.PROCESS, COMPUTING, "b64encode base64.b64encode base64.b64decode binascii.hexlify *.hex", "", "Encode large data in pieces, for example while it is sent; the call holds the GIL."),
    call("text", Way.PROCESS, COMPUTING, "*.encode *.decode *.join *.replace *.split *.translate *.format", "", "The text is large: work on it in pieces as it comes; the call holds the GIL."),
    # Operators, by their names in the module `operator`, and statements.
    call("membership", None, COMPUTING, "operator.contains", "", "Keep the elements in a set or a dict: `in` compares each element of a list."),
    call("concatenation", None, COMPUTING, "operator.add operator.iadd", "", 'Collect the parts and join them once (`"".join(parts)`, `list.extend`): each `+` copies the whole.'),
    call("freeing", None, COMPUTING, "del *.clear *.cache_clear", "", "Free so many objects in pieces, over several turns: freeing them takes long, holds the GIL, and no other thread can do it."),
)
