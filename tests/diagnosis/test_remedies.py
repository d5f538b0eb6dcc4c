"""Every row of the table of remedies, reached by a stall as it looks in a program; and the table's form."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from tests.diagnosis.cases import SITE, STDLIB, advised, at, evidence, frame, judged, samples, stack

from loopcanary.diagnosis.advice import RemedyTable, find_remedy, registered
from loopcanary.model import Blocker, Cause, GilState
from loopcanary.words.remedies import OTHER, REMEDIES, Remedy, Way

KERNEL = {
    "sleep": {"syscall": "clock_nanosleep"},
    "lock": {"syscall": "futex"},
    "flock": {"syscall": "flock"},
    "child": {"syscall": "wait4"},
    "receives": {"syscall": "recvfrom"},
    "polls": {"syscall": "poll"},
    "connects": {"syscall": "connect"},
    "opens": {"syscall": "openat", "state": "D"},
    "reads": {"syscall": "read", "args": (9, 1, 1)},
    "writes": {"syscall": "write", "args": (9, 1, 1)},
    "syncs": {"syscall": "fsync"},
    "lists": {"syscall": "getdents64"},
    "stats": {"syscall": "newfstatat"},
    "unlinks": {"syscall": "unlink"},
    "waits for the disk": {"state": "D"},
    "computes": {"running": True, "gil": GilState.SELF},
    "computes in Python": {"running": True, "gil": GilState.SELF},
    "computes without the GIL": {"running": True, "gil": GilState.FREE},
}


class Story(NamedTuple):
    call: str
    does: str
    says: str
    below: str = ""
    """Frames under the handler, innermost first, each `path:function`, below site-packages; of the standard
    library where it begins with a slash."""


STORIES = [
    # Waiting.
    Story("process.waitForFinished()", "child", "`await asyncio.create_subprocess_exec(...)` and `await"),
    Story("time.sleep(0.3)", "sleep", "`time.sleep(0.3)` with `await asyncio.sleep(...)`"),
    Story(
        "fetch(url)", "sleep", "Retry an `async def`", "tenacity/nap.py:sleep tenacity/__init__.py:__call__"
    ),
    Story("concurrent.futures.wait(jobs)", "lock", "asyncio.wrap_future` and await `asyncio.wait`"),
    Story("self.pool.shutdown()", "lock", "Shut the executor down"),
    Story("executor.map(work, items)", "lock", "Submit with `loop.run_in_executor`"),
    Story("asyncio.run_coroutine_threadsafe(load(), loop)", "lock", "waiting for it here never ends"),
    Story(
        "job.result()",
        "lock",
        "`await asyncio.wrap_future(future)`",
        "/threading.py:wait /concurrent/futures/_base.py:result",
    ),
    Story("self.queue.get()", "lock", "`asyncio.Queue`", "/threading.py:wait /queue.py:get"),
    Story("pool.map(work, items)", "lock", "run_in_executor(process_pool", "/multiprocessing/pool.py:map"),
    Story(
        "self.use()", "lock", "takes the lock and releases it", "/multiprocessing/synchronize.py:__enter__"
    ),
    Story("worker.join()", "lock", "asyncio.to_thread(thread.join)", "/threading.py:join"),
    Story("fcntl.flock(file, fcntl.LOCK_EX)", "flock", "file's lock"),
    Story("with_lock(path)", "sleep", "file's lock", "filelock/_api.py:acquire"),
    Story("ready.wait(5)", "lock", "`asyncio.Event`", "/threading.py:wait"),
    Story("semaphore.acquire()", "lock", "`asyncio.Semaphore`"),
    Story("self._lock.acquire()", "lock", "asyncio's Lock"),
    Story("async_to_sync(load)(1)", "lock", "Await the coroutine itself", "asgiref/sync.py:__call__"),
    Story("subprocess.run(['make'])", "child", "create_subprocess_exec(...)` and", "/subprocess.py:run"),
    Story("os.system('ls')", "child", "create_subprocess_shell"),
    Story("os.fork()", "computes", "page tables"),
    Story("process.wait()", "child", "await `process.wait()`", "/subprocess.py:_wait /subprocess.py:wait"),
    Story("repo.remote().pull()", "child", "Run the command with", "git/cmd.py:execute git/remote.py:pull"),
    Story("input('Name? ')", "reads", "prompt_async"),
    Story("print(report)", "writes", "The output is read slowly"),
    Story(
        "log.warning('low')",
        "receives",
        "before this handler",
        "/http/client.py:getresponse /logging/handlers.py:emit /logging/__init__.py:handle",
    ),
    Story("log.info('hello')", "writes", "QueueListener", "/logging/__init__.py:flush"),
    Story(
        "sentry_sdk.flush()",
        "lock",
        "sentry_sdk.flush",
        "sentry_sdk/worker.py:flush sentry_sdk/client.py:flush",
    ),
    Story("signal.sigwait({signal.SIGHUP})", "sleep", "add_signal_handler"),
    Story(
        "results.get()",
        "reads",
        "to_thread(queue.get)",
        "/multiprocessing/connection.py:_recv /multiprocessing/queues.py:get",
    ),
    Story("orders.put(order)", "lock", "to_thread(queue.put, item)", "/multiprocessing/queues.py:put"),
    Story("argon2.hash_secret(secret, salt)", "lock", "slow on purpose", "argon2/low_level.py:hash_secret"),
    # Databases.
    Story("session.get(Order, 3)", "computes", "`yield_per`", "sqlalchemy/orm/loading.py:instances"),
    Story("database.execute('begin')", "sleep", "`BEGIN IMMEDIATE`"),
    Story("session.scalars(query)", "receives", "AsyncSession", "sqlalchemy/orm/session.py:scalars"),
    Story("list(orders)", "receives", "`aget`", "django/db/models/query.py:__iter__"),
    Story("Order.get(id=3)", "receives", "Tortoise", "peewee.py:get"),
    Story(
        "cache.get('k')", "receives", "redis.asyncio.Redis", "redis/connection.py:read redis/client.py:get"
    ),
    Story("memory.get('k')", "receives", "aiomcache", "pymemcache/client/base.py:get"),
    Story("pymysql.connect(host='db')", "receives", "asyncmy", "pymysql/connections.py:connect"),
    Story("psycopg2.connect(dsn)", "polls", "asyncpg"),
    Story(
        "store(order)", "polls", "AsyncConnectionPool", "psycopg/waiting.py:wait psycopg/cursor.py:execute"
    ),
    Story("pyodbc.connect(dsn)", "receives", "aioodbc"),
    Story("users.find_one({})", "receives", "AsyncMongoClient", "pymongo/network.py:command"),
    Story("session.run(query)", "receives", "driver's async session", "neo4j/_sync/io/_bolt.py:run"),
    Story("database.execute('insert into t values (1)')", "syncs", "aiosqlite"),
    Story("cur.execute(sql)", "polls", "asyncio driver"),
    Story("duckdb.sql(query)", "computes without the GIL", "DuckDB"),
    Story("cache.setdefault(k, 1)", "reads", "it reads and writes files", "diskcache/core.py:set"),
    # The network.
    Story("boto3.client('s3')", "computes", "Make clients once", "botocore/loaders.py:load_service_model"),
    Story(
        "requests.get(url)",
        "receives",
        "its API is that of requests",
        "urllib3/pool.py:open requests/api.py:get",
    ),
    Story("urllib.request.urlopen(url)", "connects", "to_thread(urlopen", "/urllib/request.py:urlopen"),
    Story(
        "client.chat.completions.create(m)",
        "receives",
        "AsyncOpenAI",
        "httpx/_client.py:send openai/_client.py:post",
    ),
    Story(
        "s3.get_object(Key=k)", "receives", "aioboto3", "urllib3/pool.py:open botocore/client.py:_api_call"
    ),
    Story(
        "bucket.blob(k).upload_from_string(b)",
        "receives",
        "AsyncClient",
        "google/cloud/storage/blob.py:upload",
    ),
    Story(
        "blob.upload_blob(b)",
        "receives",
        "azure.storage.blob.aio",
        "azure/storage/blob/_client.py:upload_blob",
    ),
    Story("es.search(index='x')", "receives", "AsyncElasticsearch", "elasticsearch/_sync/client.py:search"),
    Story("producer.send('t', b).get()", "lock", "AIOKafkaProducer", "kafka/future.py:get"),
    Story("consumer.poll(1.0)", "polls", "`poll` on a thread of its own"),
    Story("channel.basic_get('q')", "polls", "aio-pika", "pika/adapters/blocking_connection.py:basic_get"),
    Story("resize.delay(7)", "receives", "never wait for its result", "celery/app/task.py:delay"),
    Story(
        "mqtt.publish('a', 'b').wait_for_publish()", "lock", "aiomqtt", "paho/mqtt/client.py:wait_for_publish"
    ),
    Story("socket.recv_json()", "polls", "zmq.asyncio.Context"),
    Story("ssh.exec_command('ls')", "lock", "asyncssh", "paramiko/client.py:exec_command"),
    Story(
        "smtp.send_message(mail)", "receives", "aiosmtplib", "/smtplib.py:getreply /smtplib.py:send_message"
    ),
    Story("imap.fetch('1', '(RFC822)')", "receives", "aioimaplib", "/imaplib.py:fetch"),
    Story("ftp.retrbinary('RETR a', f.write)", "receives", "aioftp", "/ftplib.py:retrbinary"),
    Story("connection.search('dc=x', '(a=b)')", "receives", "bonsai", "ldap3/core/connection.py:search"),
    Story("proxy.add(1, 2)", "receives", "zeep", "/xmlrpc/client.py:__call__"),
    Story("stub.Get(request)", "lock", "grpc.aio", "grpc/_channel.py:__call__"),
    Story("ws.send('x')", "receives", "websockets.connect", "websocket/_core.py:send"),
    Story("docker_client.containers.run('x')", "receives", "aiodocker", "docker/api/client.py:_post"),
    Story("api.list_pods('x')", "receives", "kubernetes_asyncio", "kubernetes/client/api_client.py:call_api"),
    Story("stripe.Charge.create(1)", "receives", "package's async client where", "stripe/_charge.py:create"),
    Story(
        "httpx.get(url)",
        "receives",
        "`httpx.Client` blocks",
        "httpcore/_sync/http11.py:read httpx/_api.py:get",
    ),
    Story("socket.getaddrinfo(host, 80)", "polls", "loop.getaddrinfo(...)` in place of"),
    Story("socket.gethostbyaddr(address)", "polls", "loop.getnameinfo"),
    Story("resolver.resolve(name)", "polls", "dns.asyncresolver", "dns/resolver.py:resolve"),
    Story("load(url)", "receives", "an async client such as", "/http/client.py:getresponse"),
    Story("context.wrap_socket(s)", "receives", "open_connection(..., ssl=...)", "/ssl.py:do_handshake"),
    Story("sock.connect(address)", "connects", "loop.sock_connect"),
    Story("connection.recv(100)", "receives", "loop.sock_recv"),
    Story("select.select([a], [], [], 1)", "polls", "loop.add_reader"),
    # Files.
    Story("os.fsync(file)", "syncs", "Sync with"),
    Story("shutil.copytree(a, b)", "reads", "`shutil.copytree(a, b)` with `await", "/shutil.py:copytree"),
    Story("os.listdir(folder)", "lists", "List folders"),
    Story("os.stat(path)", "stats", "Ask the file system"),
    Story("os.unlink(path)", "unlinks", "Change folders"),
    Story("path.read_text()", "opens", "anyio.Path", "/pathlib.py:open /pathlib.py:read_text"),
    Story(
        "list(usage(root))",
        "computes in Python",
        "an object for each path",
        "/pathlib.py:_make_child_relpath",
    ),
    Story("tempfile.mkstemp()", "opens", "temporary files", "/tempfile.py:mkstemp"),
    Story("open(path)", "opens", "to_thread(open"),
    Story("file.read()", "reads", "Read the file"),
    Story("file.write(data)", "writes", "Write the file"),
    Story("unpack(path)", "reads", "Pack and unpack", "/zipfile.py:extractall"),
    Story("mmap.mmap(f.fileno(), 0)", "waits for the disk", "MADV_WILLNEED"),
    Story("fs.cat(path)", "receives", "fsspec's", "s3fs/core.py:cat fsspec/asyn.py:wrapper"),
    Story("os.urandom(1 << 30)", "waits for the disk", "entropy"),
    # Computing, in the standard library.
    Story(
        "json.loads(body)",
        "computes",
        "orjson, msgspec",
        "/json/decoder.py:raw_decode /json/__init__.py:loads",
    ),
    Story(
        "json.dumps(body)", "computes", "faster serialiser", "/json/encoder.py:encode /json/__init__.py:dumps"
    ),
    Story("orjson.loads(body)", "computes", "decode it in a process pool"),
    Story("orjson.dumps(rows)", "computes", "each encoded by itself"),
    Story("msgpack.packb(rows)", "computes", "each encoded by itself"),
    Story(
        "re.match(pattern, text)", "computes", "free of nested repetition and bound its input; the call holds"
    ),
    Story("WORDS.match(text)", "computes", "google-re2"),
    Story("copy.deepcopy(orders)", "computes", "share what does not change", "/copy.py:deepcopy"),
    Story("pickle.dumps(orders)", "computes", "serialise less"),
    Story("ast.parse(text)", "computes", "Compile once", "/ast.py:parse"),
    Story("hashlib.pbkdf2_hmac('sha256', a, b, 9)", "computes without the GIL", "it releases the GIL while"),
    Story("hashlib.sha256(data)", "computes without the GIL", "2 KiB"),
    Story(
        "zlib.compress(body, 9)",
        "computes without the GIL",
        "Compress with `await asyncio.to_thread(...)`: it",
    ),
    Story("zstandard.compress(body)", "computes without the GIL", "most codecs"),
    Story("writer.writerows(rows)", "computes", "in batches"),
    Story("ET.fromstring(text)", "computes", "iterparse"),
    Story("sorted(numbers)", "computes", "bisect"),
    Story("pow(3, exponent, MODULUS)", "computes", "gmpy2"),
    Story("Decimal('1') / 3", "computes", "exact numbers are slow", "/_pydecimal.py:__truediv__"),
    Story("order in orders", "computes", "in a set or a dict"),
    Story("text + line", "computes", "join them once"),
    Story("self.cache.clear()", "computes", "in pieces, over several turns"),
    Story("del orders", "computes", "in pieces, over several turns"),
    Story("difflib.unified_diff(a, b)", "computes", "rapidfuzz", "/difflib.py:get_opcodes"),
    Story("mean(xs)", "computes", "fmean", "/statistics.py:mean"),
    Story("read_mail(data)", "computes", "Parse the large document", "/email/parser.py:parsebytes"),
    Story("report(error)", "computes", "inspect.stack()", "/traceback.py:format_exception"),
    Story("base64.b64encode(data)", "computes", "Encode large data in pieces"),
    Story("text.encode()", "computes", "The text is large"),
    # Computing, in packages.
    Story("bcrypt.hashpw(password, salt)", "computes without the GIL", "slow on purpose"),
    Story(
        "sign(data)",
        "computes without the GIL",
        "keep keys loaded",
        "cryptography/hazmat/primitives/rsa.py:sign",
    ),
    Story("pd.read_csv(path)", "computes", "Read and write tables", "pandas/io/parsers/readers.py:read_csv"),
    Story("df.groupby('a').sum()", "computes", "for much of that time", "pandas/core/groupby/groupby.py:sum"),
    Story(
        "pl.read_parquet(path)",
        "computes without the GIL",
        "collect_async",
        "polars/io/parquet.py:read_parquet",
    ),
    Story("np.linalg.svd(a)", "computes without the GIL", "arrays of objects", "numpy/linalg/_linalg.py:svd"),
    Story("image.resize((80, 80))", "computes without the GIL", "Pillow and OpenCV", "PIL/Image.py:resize"),
    Story("clf.predict(rows)", "computes", "loads the model once, or", "sklearn/ensemble/_forest.py:predict"),
    Story(
        "model.generate(x)",
        "computes without the GIL",
        "wait for the GPU",
        "torch/nn/modules/module.py:_call_impl",
    ),
    Story("nlp(text)", "computes", "language processing", "spacy/language.py:__call__"),
    Story(
        "yaml.safe_load(text)", "computes", "CSafeLoader", "yaml/scanner.py:scan yaml/__init__.py:safe_load"
    ),
    Story("toml.loads(text)", "computes", "tomllib", "toml/decoder.py:loads"),
    Story("template.render(x=1)", "computes", "template.generate", "jinja2/environment.py:render"),
    Story("etree.fromstring(text)", "computes without the GIL", "lxml releases"),
    Story("BeautifulSoup(text, 'html.parser')", "computes", "selectolax", "bs4/__init__.py:__init__"),
    Story("page_of(text)", "computes", "Render a text once", "markdown/core.py:convert"),
    Story(
        "Order.model_validate(data)", "computes", "Validate less at once", "pydantic/main.py:model_validate"
    ),
    Story("fig.savefig(path)", "computes", "pyplot", "matplotlib/figure.py:savefig"),
    Story(
        "doc.build(parts)", "computes", "Make and read documents", "reportlab/platypus/doctemplate.py:build"
    ),
    Story(
        "shortest(graph)", "computes", "computes in Python, or in C", "networkx/algorithms/paths.py:dijkstra"
    ),
    Story("message.ParseFromString(data)", "computes", "upb"),
    Story("parser.parse(text)", "computes", "fromisoformat", "dateutil/parser/_parser.py:parse"),
]


def placed(entry, further=0):
    path, _, function = entry.rpartition(":")
    return frame(function, f"{STDLIB if path.startswith('/') else SITE}/{path.lstrip('/')}", 10 + further)


def told(story):
    source = f"def handler():\n    {story.call}\n"
    moves = story.does == "computes in Python"
    stacks = [
        stack(*[placed(entry, index * moves) for entry in story.below.split()], at(story.call, source))
        for index in range(12)
    ]
    return judged(evidence(samples(*stacks, **KERNEL[story.does])), source)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.call)
def test_the_stall_leads_to_its_remedy(story):
    stall = told(story)
    assert story.says in stall.advice, (stall.cause, stall.evidence)
    assert "{" not in stall.advice


CALLS = [remedy for remedy in REMEDIES if remedy.calls or remedy.modules]
LOOPS = sorted({remedy.loop for remedy in REMEDIES} - {"", "asyncio"})
BY_WAY = [remedy for remedy in REMEDIES if remedy.way and remedy.loop and not remedy.causes]


def row_of(cause, call):
    return find_remedy(registered(), cause, Blocker(call=call, function=None), {})


def test_every_row_for_a_call_has_a_story():
    advised = {told(story).advice for story in STORIES}
    calls = [story.call for story in STORIES]
    for remedy in CALLS:
        assert {remedy.text.replace("{call}", call) for call in calls} & advised, remedy.id


def test_every_name_of_a_call_leads_to_its_row():
    for remedy in CALLS:
        for name in remedy.calls:
            found = [row_of(cause, f"{name.replace('*', 'thing')}()") for cause in remedy.causes or Cause]
            assert any(row is not None and name in row.calls for row in found), name


def test_every_module_leads_to_its_row():
    for remedy in CALLS:
        for module in remedy.modules:
            found = [
                find_remedy(registered(), cause, None, {(module,): 1}) for cause in remedy.causes or Cause
            ]
            assert remedy in found, module


def test_every_other_row_is_reached_by_what_it_is_about():
    table = registered()
    for remedy in set(REMEDIES) - set(CALLS):
        about = (remedy.topic,) if remedy.topic else (*remedy.causes,) or (remedy.way,)
        assert remedy.within or [table.about(one, remedy.loop) for one in about] == [remedy], remedy.id


def test_no_row_is_there_twice():
    for column in ("id", "text"):
        values = [getattr(remedy, column) for remedy in REMEDIES if not remedy.way or column == "id"]
        assert sorted(values) == sorted(set(values))


@pytest.mark.parametrize("remedy", REMEDIES, ids=lambda remedy: remedy.id)
def test_a_row_is_a_plain_sentence(remedy):
    assert re.fullmatch(r"[A-Z`].*[^.]\.", remedy.text)
    assert set(re.findall(r"\{(\w*)\}", remedy.text)) <= {"call", "holder", "at", "slow", "block"}
    assert "{call}" not in remedy.text.replace("`{call}`", "")
    assert remedy.text.count("`") % 2 == 0
    assert "  " not in remedy.text
    assert len(remedy.text) < 170
    # "make `f` an `async def` and run ..."
    assert not remedy.needs_coroutine or remedy.text.split()[0] not in {"It", "The", "On", "This"}
    assert not re.search(r"\b(whom|whoever|somebody|nobody|stands|of it|so long)\b", remedy.text)


def test_rows_in_place_of_others_name_rows_that_exist():
    ids = {remedy.id for remedy in REMEDIES}
    assert {name for remedy in REMEDIES for name in remedy.replaces} <= ids


def test_a_narrow_name_goes_before_one_that_fits_any_receiver():
    assert row_of(Cause.LOCK, "self.semaphore.acquire()").id == "semaphore.acquire"


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_has_words_for_every_way(loop):
    rows = [remedy for remedy in BY_WAY if remedy.loop == loop]
    assert loop == "pygame" or {remedy.way for remedy in rows} == set(Way)
    assert not any("asyncio" in remedy.text for remedy in rows)


@pytest.mark.parametrize(
    ("kind", "loop", "says"),
    [
        ("trio", "trio", "trio.to_thread"),
        ("anyio", "trio", "trio.to_thread"),
        ("Qt", "qt", "QThreadPool"),
        ("PySide6", "qt", "QThreadPool"),
        ("tk", "tk", "widget.after"),
        ("GLib", "glib", "GLib.idle_add"),
        ("gtk4", "glib", "GLib.idle_add"),
        ("gevent", "gevent", "threadpool"),
        ("pygame", "pygame", "out of the frame"),
        ("novel", OTHER, "hand the result back"),
        ("twisted", "twisted", "deferToThread"),
        ("thread", "thread", "queue of jobs"),
    ],
)
def test_loops_are_advised_in_their_own_words(kind, loop, says):
    assert registered().loop_of(kind) == loop
    blocker = Blocker(call="path.read_text()", function=None)
    assert says in advised(Cause.DISK_IO, blocker, (), kind)
    assert says in advised(Cause.DISK_IO, None, (), kind)


def test_causes_that_are_about_a_call_have_a_way():
    ways = {*(cause for row in REMEDIES if row.loop == "asyncio" and row.way for cause in row.causes)}
    about_no_call = (Cause.GIL, Cause.GC, Cause.IMPORT, Cause.BURST, Cause.HOST, Cause.CRASH, Cause.UNKNOWN)
    assert ways == set(Cause) - {*about_no_call}


def test_rows_of_a_third_party_come_first():
    rows = (
        Remedy("acme", "Use `acme.aio`.", Way.CLIENT, calls=("acme.fetch",)),
        Remedy("curio.client", "Use a client for curio.", Way.CLIENT, loop="curio"),
    )
    table, fetch = RemedyTable((*rows, *REMEDIES)), Blocker(call="acme.fetch(1)", function=None)
    assert advised(Cause.NETWORK_IO, fetch, (), "asyncio", table=table) == "Use `acme.aio`."
    assert advised(Cause.NETWORK_IO, fetch, (), "curio", table=table) == "Use a client for curio."
    assert "trio" in advised(Cause.NETWORK_IO, fetch, (), "trio", table=table)
    assert "curio.client" not in {remedy.id for remedy in REMEDIES}
