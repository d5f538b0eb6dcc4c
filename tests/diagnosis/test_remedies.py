"""Every row of the table of remedies, reached by a stall as it looks in a program; and the table's form."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import pytest
from tests.building.evidence import MS
from tests.diagnosis.cases import SITE, STDLIB, advised, at, evidence, frame, judged, samples, stack

from loopcanary.diagnosis.advice import RemedyTable, find_remedy, registered
from loopcanary.model import Blocker, Cause, GilState
from loopcanary.words.libraries import FOLDER, LibraryFileError, read_rows
from loopcanary.words.remedies import OTHER, REMEDIES, Remedy, Way
from loopcanary.words.sentences import coded, spoken

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
    "collects garbage": {"running": True, "gil": GilState.SELF, "in_gc": True},
    "computes without the GIL": {"running": True, "gil": GilState.FREE},
}


FETCHES = "curl_cffi/requests/session.py:Session.request"


class Story(NamedTuple):
    call: str
    does: str
    says: str
    below: str = ""
    """Frames under the handler, innermost first, each `path:function`, below site-packages; of the standard
    library where it begins with a slash."""
    head: str = ""
    """The first line of the file."""
    before: str = "pass"
    """The line before the call."""
    above: str = ""
    """Frames that called the handler, as `below`."""
    loop: str = "asyncio"
    function: str = "handler"
    """Around the call; empty: the program has no frame."""


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
    Story("with_lock(path)", "sleep", "async with AsyncFileLock", "filelock/_api.py:acquire"),
    Story("ready.wait(5)", "lock", "`asyncio.Event`", "/threading.py:wait"),
    Story("semaphore.acquire()", "lock", "`asyncio.Semaphore`"),
    Story("self._lock.acquire()", "lock", "asyncio's Lock"),
    Story("async_to_sync(load)(1)", "lock", "Await the coroutine itself", "asgiref/sync.py:__call__"),
    Story("subprocess.run(['make'])", "child", "and `await process.communicate()`", "/subprocess.py:run"),
    Story("os.system('ls')", "child", "create_subprocess_shell"),
    Story("os.fork()", "computes", "page tables"),
    Story("process.wait()", "child", "await `process.wait()`", "/subprocess.py:_wait /subprocess.py:wait"),
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
    Story("list(Order.objects.all())", "computes", "`values()`", "django/db/models/query.py:__iter__"),
    Story("list(orders)", "receives", "`aget`", "django/db/models/query.py:__iter__"),
    Story(
        "cache.get('k')", "receives", "redis.asyncio.Redis", "redis/connection.py:read redis/client.py:get"
    ),
    Story("pymysql.connect(host='db')", "receives", "asyncmy", "pymysql/connections.py:connect"),
    Story("psycopg2.connect(dsn)", "polls", "asyncpg"),
    Story(
        "store(order)", "polls", "AsyncConnectionPool", "psycopg/waiting.py:wait psycopg/cursor.py:execute"
    ),
    Story("pyodbc.connect(dsn)", "receives", "aioodbc"),
    Story("users.find_one({})", "receives", "AsyncMongoClient", "pymongo/network.py:command"),
    Story("session.run(query)", "receives", "AsyncGraphDatabase", "neo4j/_sync/io/_bolt.py:run"),
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
    Story(
        "consumer.poll(1.0)",
        "polls",
        "`poll` on a thread of its own",
        head="from confluent_kafka import Consumer",
        before="consumer = Consumer(settings)",
    ),
    Story("channel.basic_get('q')", "polls", "aio-pika", "pika/adapters/blocking_connection.py:basic_get"),
    Story("resize.delay(7)", "receives", "never wait for its result", "celery/app/task.py:delay"),
    Story(
        "mqtt.publish('a', 'b').wait_for_publish()", "lock", "aiomqtt", "paho/mqtt/client.py:wait_for_publish"
    ),
    Story("socket.recv_json()", "polls", "zmq.asyncio.Context", "zmq/sugar/socket.py:recv_json"),
    Story("ssh.exec_command('ls')", "lock", "asyncssh", "paramiko/client.py:exec_command"),
    Story(
        "smtp.send_message(mail)", "receives", "aiosmtplib", "/smtplib.py:getreply /smtplib.py:send_message"
    ),
    Story("imap.fetch('1', '(RFC822)')", "receives", "aioimaplib", "/imaplib.py:fetch"),
    Story("ftp.retrbinary('RETR a', f.write)", "receives", "aioftp", "/ftplib.py:retrbinary"),
    Story("proxy.add(1, 2)", "receives", "no client for asyncio", "/xmlrpc/client.py:__call__"),
    Story("stub.Get(request)", "lock", "grpc.aio", "grpc/_channel.py:__call__"),
    Story("ws.send('x')", "receives", "websockets.connect", "websocket/_core.py:send"),
    Story("docker_client.containers.run('x')", "receives", "aiodocker", "docker/api/client.py:_post"),
    Story("api.list_pods('x')", "receives", "kubernetes_asyncio", "kubernetes/client/api_client.py:call_api"),
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
    Story("os.unlink(path)", "unlinks", "Make, rename and remove files"),
    Story("path.read_text()", "opens", "anyio.Path", "/pathlib.py:open /pathlib.py:read_text"),
    Story(
        "list(usage(root))",
        "computes in Python",
        "an object for each path",
        "/pathlib.py:_make_child_relpath",
    ),
    Story("child.stdout.readline()", "child", "Read what the child prints"),
    Story(
        "Engine()", "computes in Python", "take turns with the GIL", "pysnmp/entity/engine.py:Engine.__init__"
    ),
    Story("log.info(rows)", "computes", "Log less here", "/logging/__init__.py:Formatter.format"),
    Story(
        "requests.get(url)", "receives", "patch_all", "/socket.py:readinto requests/api.py:get", loop="gevent"
    ),
    Story("plots.load(rows)", "computes in Python", "`QThread`", "plots/model.py:load", loop="qt"),
    Story("session.get(url)", "polls", "`AsyncSession`", FETCHES),
    Story("list(resolved(root))", "computes in Python", "is split in Python", "/posixpath.py:realpath"),
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
    Story(
        "model.generate(x)",
        "computes without the GIL",
        "wait for the GPU",
        "torch/nn/modules/module.py:_call_impl",
    ),
    Story(
        "yaml.safe_load(text)", "computes", "CSafeLoader", "yaml/scanner.py:scan yaml/__init__.py:safe_load"
    ),
    Story("toml.loads(text)", "computes", "tomllib", "toml/decoder.py:loads"),
    Story("template.render(x=1)", "computes", "template.generate", "jinja2/environment.py:render"),
    Story("BeautifulSoup(text)", "computes", "with lxml", "/html/parser.py:feed bs4/__init__.py:__init__"),
    Story(
        "Order.model_validate(data)", "computes", "Validate less at once", "pydantic/main.py:model_validate"
    ),
    Story("fig.savefig(path)", "computes", "pyplot", "matplotlib/figure.py:Figure.savefig"),
    Story(
        "message.ParseFromString(data)",
        "computes",
        "upb",
        "google/protobuf/internal/decoder.py:DecodeField",
    ),
    Story("parser.parse(text)", "computes", "fromisoformat", "dateutil/parser/_parser.py:parse"),
    Story("rule.after(moment)", "computes", "`count` or `until`", "dateutil/rrule.py:after"),
    Story(
        "tracer.start_span(name)",
        "receives",
        "BatchSpanProcessor",
        "requests/sessions.py:send opentelemetry/exporter/trace.py:export opentelemetry/sdk/trace.py:end",
    ),
]


SEARCHES = "charset_normalizer/md.py:mess_ratio charset_normalizer/api.py:from_bytes"
OF_AIOHTTP = "aiohttp/client_reqrep.py:ClientResponse.text"
ASKS = "IPython/utils/dir2.py:get_real_method IPython/core/formatters.py:DisplayFormatter.format"
TEXT = "/tkinter/__init__.py:Text"
MAKES_CLIENT = (
    "botocore/args.py:ClientArgsCreator.get_client_args aiobotocore/session.py:AioSession._create_client"
)
ASYNC_CALLS = "botocore/parsers.py:parse aiobotocore/client.py:AioBaseClient._make_api_call"
PROVIDER = "/subprocess.py:run azure/identity/_bearer_token_provider.py:wrapper openai/lib/azure.py:"
LEGEND = "matplotlib/legend.py:Legend"
COUNTS = "litellm/utils.py:token_counter"
FILES = "tornado/web.py:StaticFileHandler"
SHOWS_TABLE = "qfluentwidgets/components/widgets/table_view.py:TableBase.showEvent"
COMPLETES = "IPython/core/completer.py:IPCompleter"
PROVED = [
    # What was seen, and below it what looks like it.
    Story("await response.text()", "computes", "response.text(encoding=...)", f"{SEARCHES} {OF_AIOHTTP}"),
    Story("response.text", "computes", "response.encoding", f"{SEARCHES} requests/models.py:Response.text"),
    Story(
        "web.json_response(rows)",
        "computes",
        "web.Response(body=orjson",
        "/json/__init__.py:dumps aiohttp/web_response.py:json_response",
    ),
    Story(
        "await response.json()",
        "computes",
        "loads=orjson.loads",
        "/json/__init__.py:loads aiohttp/client_reqrep.py:ClientResponse.json",
    ),
    Story(
        "web.Response(body=rows)",
        "computes without the GIL",
        "zlib_executor_size",
        "aiohttp/web_response.py:Response._do_start_compression",
    ),
    Story(
        "AsyncOpenAI(api_key=key)",
        "computes",
        "TLS context, once",
        "/ssl.py:create_default_context httpx/_config.py:create_ssl_context openai/_client.py:__init__",
    ),
    Story(
        "re.compile(words)",
        "computes",
        "Compile patterns once",
        "/re/_parser.py:_parse /re/_compiler.py:compile",
    ),
    Story(
        "await loop.sock_recv(news, 99)",
        "receives",
        "setblocking(False)",
        "/asyncio/selector_events.py:BaseSelectorEventLoop.sock_recv",
    ),
    Story("self.text.see('end')", "computes", "Break long lines", f"{TEXT}.see", loop="tk"),
    Story(
        "psutil.cpu_percent(interval=0.5)",
        "sleep",
        "interval=None",
        "psutil/__init__.py:cpu_percent",
        head="import psutil",
    ),
    Story(
        "keys.get_signing_key(token)",
        "receives",
        "where its cache has none",
        "/urllib/request.py:urlopen jwt/jwks_client.py:PyJWKClient.fetch_data",
    ),
    Story(
        "return rows",
        "computes in Python",
        "JSONResponse(rows)",
        "fastapi/encoders.py:jsonable_encoder fastapi/routing.py:serialize_response",
        function="",
    ),
    Story(
        "JSONResponse(rows)",
        "computes",
        "encodes its content on the loop",
        "/json/__init__.py:dumps starlette/responses.py:JSONResponse.render",
    ),
    Story(
        "return rows",
        "computes without the GIL",
        "compresslevel",
        "starlette/middleware/gzip.py:GZipResponder.apply_compression",
        function="",
    ),
    Story(
        "self.status(node)", "computes", "raise `AttributeError` at once", function="__getattr__", above=ASKS
    ),
    Story(
        "self.pages()",
        "computes",
        "IPython shows the value",
        function="_repr_html_",
        above="IPython/core/formatters.py:__call__",
    ),
    Story(
        "self.nodes(name)",
        "computes",
        "rich asks each object",
        function="__getattr__",
        above="rich/protocol.py:rich_cast",
    ),
    Story(
        "app.exec()",
        "computes in Python",
        "convert numbers",
        "matplotlib/axis.py:Axis.draw matplotlib/backends/backend_qtagg.py:paintEvent",
        loop="qt",
    ),
    Story(
        "SentenceTransformer(name)",
        "computes",
        "Load the model once",
        "torch/serialization.py:load sentence_transformers/models.py:load",
    ),
    Story(
        "templates.from_string(text)",
        "computes",
        "Compile templates once",
        "jinja2/lexer.py:wrap jinja2/environment.py:Environment.compile",
    ),
    Story(
        "TypeAdapter(list[Order])",
        "computes in Python",
        "once, at module level",
        "pydantic/_internal/_generate_schema.py:match_type pydantic/type_adapter.py:__init__",
    ),
    Story(
        "jsonschema.validate(order, SCHEMA)",
        "computes in Python",
        "Make the validator once",
        "jsonschema/validators.py:create.<locals>.Validator.check_schema jsonschema/validators.py:validate",
    ),
    Story("logger.info(order)", "writes", "enqueue=True", "loguru/_logger.py:info"),
    Story(
        "check_address(mail)",
        "polls",
        "check_deliverability=False",
        "dns/resolver.py:resolve email_validator/deliverability.py:validate",
    ),
    Story("cursor.execute(sql)", "receives", "asyncio driver"),
    Story("oracledb.connect(dsn)", "receives", "connect_async"),
    Story("litellm.completion(model)", "receives", "acompletion", "litellm/main.py:completion"),
    Story(
        "chain.invoke(question)",
        "receives",
        "ainvoke",
        "langchain_core/runnables/base.py:RunnableSequence.invoke",
    ),
    Story("ollama.chat(m)", "receives", "ollama.AsyncClient", "ollama/_client.py:chat"),
    Story("service.Add(1, 2)", "receives", "zeep.AsyncClient", "zeep/proxy.py:__call__"),
    Story("bus.emit('a')", "receives", "python-socketio", "socketio/client.py:emit"),
    Story(
        "slack.chat_postMessage(m)", "receives", "AsyncWebClient", "slack_sdk/web/client.py:chat_postMessage"
    ),
    Story("bot.send_message(1, 'a')", "receives", "AsyncTeleBot", "telebot/apihelper.py:_make_request"),
    Story("next(changes)", "receives", "watchfiles.awatch", "watchfiles/main.py:watch"),
    Story(
        "await request.json()",
        "computes",
        "orjson.loads(await request.body())",
        "/json/__init__.py:loads starlette/requests.py:Request.json",
    ),
    Story("port.read(9)", "polls", "pyserial-asyncio", "serial/serialposix.py:Serial.read"),
    Story("child.expect('$ ')", "polls", "async_=True", "pexpect/pty_spawn.py:spawn.read_nonblocking"),
    Story(
        "return rows",
        "computes",
        "cryptg",
        "pyaes/aes.py:AES.decrypt telethon/crypto/aes.py:AES.decrypt_ige",
        function="",
    ),
    Story("return rows", "computes", "TgCrypto", "pyaes/aes.py:AES.decrypt pyrogram/a.py:b", function=""),
    Story(
        "await ws.send(rows)",
        "computes without the GIL",
        "compression=None",
        "websockets/extensions/permessage_deflate.py:PerMessageDeflate.encode",
    ),
    Story("ws.recv()", "polls", "websockets.asyncio", "websockets/sync/connection.py:Connection.recv"),
    Story(
        "load_workbook(path)",
        "computes in Python",
        "read_only=True",
        "openpyxl/reader/excel.py:load_workbook",
    ),
    Story("binance.fetch_ticker('a')", "receives", "ccxt.async_support", "ccxt/base/exchange.py:fetch"),
    Story("reddit.subreddit('a').hot()", "receives", "asyncpraw", "praw/reddit.py:request"),
    Story(
        "BeautifulSoup(page)",
        "computes",
        "from_encoding",
        "charset_normalizer/api.py:from_bytes bs4/dammit.py:detect",
    ),
    Story("session.resource('s3')", "computes", "Make clients once", MAKES_CLIENT),
    Story("session.resource('s3')", "collects garbage", "Make clients once", MAKES_CLIENT),
    Story(
        "client.connect(broker)",
        "receives",
        "`client.connect(broker)` with `await asyncio.to_thread(...)`, or use paho's",
        "/ssl.py:SSLSocket.do_handshake paho/mqtt/client.py:Client.reconnect",
    ),
    Story(
        "parse(text)",
        "computes",
        "complete_in_thread=True",
        function="get_completions",
        above="prompt_toolkit/completion/base.py:Completer.get_completions_async",
    ),
    Story(
        "search(text)",
        "computes",
        "ThreadedAutoSuggest",
        function="get_suggestion",
        above="prompt_toolkit/auto_suggest.py:AutoSuggest.get_suggestion_async",
    ),
    Story(
        "logger.info(order)",
        "computes",
        "rotates and compresses",
        "loguru/_file_sink.py:FileSink.write loguru/_handler.py:Handler.emit loguru/_logger.py:_log",
    ),
    Story(
        "tell(message)",
        "receives",
        "then calls this function",
        function="send",
        above="loguru/_simple_sinks.py:CallableSink.write loguru/_handler.py:Handler.emit",
    ),
    Story(
        "import models",
        "computes",
        "uvicorn imports the application",
        "importlib._bootstrap:_find_and_load",
        above="importlib._bootstrap:_find_and_load uvicorn/importer.py:import_from_string",
    ),
    Story(
        "await connection.execute(insert.values(rows))",
        "computes in Python",
        "Pass the rows as parameters",
        "sqlalchemy/sql/crud.py:_extend_values_for_multiparams sqlalchemy/engine/base.py:Connection.execute",
    ),
    Story(
        "await client.create(question)",
        "child",
        "from `azure.identity.aio`",
        f"{PROVIDER}AsyncAzureOpenAI._get_azure_ad_token",
    ),
    Story(
        "credential.get_token(scope)",
        "child",
        "client or credential",
        "/subprocess.py:run azure/identity/_credentials/azure_cli.py:AzureCliCredential.get_token",
    ),
    Story(
        "await router.acompletion(m)",
        "computes without the GIL",
        "Leave `enable_pre_call_checks` out",
        f"tiktoken/core.py:encode {COUNTS} litellm/router.py:Router._pre_call_checks",
    ),
    Story(
        "canvas.draw()",
        "computes in Python",
        "loc='upper right'",
        f"{LEGEND}._find_best_position {LEGEND}.draw",
        loop="qt",
    ),
    Story(
        "return rows",
        "computes in Python",
        "use_jedi = False",
        f"jedi/api/completion.py:Completion.complete {COMPLETES}._jedi_matches",
        function="",
    ),
    Story("stub.Get(request)", "lock", "init_gevent", "grpc/_channel.py:__call__", loop="gevent"),
    Story("session.get(url)", "polls", 'thread="gevent"', FETCHES, loop="gevent"),
    Story(
        "log.exception('failed')",
        "computes in Python",
        "plain_traceback",
        "rich/text.py:wrap structlog/dev.py:RichTracebackFormatter.__call__ structlog/dev.py:render",
    ),
    Story(
        "await pipe.execute()",
        "computes in Python",
        "in batches of some hundred",
        "redis/connection.py:Connection.pack_commands redis/asyncio/client.py:Pipeline.execute",
    ),
    Story(
        "ask(text)",
        "child",
        "`app.invalidate()`",
        function="show_toolbar",
        above="prompt_toolkit/formatted_text/base.py:to_formatted_text",
    ),
    Story("return rows", "computes in Python", "`compute_etag`", f"{FILES}.get_content_version", function=""),
    Story("self.setCurrentIndex(1)", "computes in Python", "resizeRowsToContents", SHOWS_TABLE, loop="qt"),
    Story(
        "client.execute()",
        "lock",
        "`async_execute()`",
        "/threading.py:wait jupyter_core/utils/__init__.py:run_sync.<locals>.wrapped",
    ),
    Story(
        "process.join(timeout=3)",
        "child",
        "queues and pipes before `join`",
        "/multiprocessing/popen_fork.py:Popen.wait /multiprocessing/process.py:BaseProcess.join",
    ),
]
ALIKE = [
    # An encoding was said; an own detector; the answer is decoded elsewhere.
    Story("await response.text(encoding='utf-8')", "computes", "encoding=...", f"{SEARCHES} {OF_AIOHTTP}"),
    Story("from_bytes(page)", "computes", "response.encoding", SEARCHES),
    Story("await response.text()", "computes", "encoding=...", f"/codecs.py:decode {OF_AIOHTTP}"),
    Story("await response.json(loads=parse)", "computes", "orjson", f"/json/decoder.py:decode {OF_AIOHTTP}"),
    Story(
        "zlib.compress(rows)",
        "computes without the GIL",
        "zlib_executor_size",
        above="aiohttp/web_app.py:_handle",
    ),
    Story(
        "AsyncOpenAI(api_key=key)",
        "computes",
        "TLS context",
        "openai/_models.py:build openai/_client.py:__init__",
    ),
    Story(
        "find_dates(text)", "computes", "Compile patterns", "/re/_parser.py:_parse dateparser/search.py:find"
    ),
    Story(
        "self.nodes(name)",
        "computes",
        "rich asks",
        function="__getattr__",
        above="app.py:__rich__ rich/console.py:print",
    ),
    Story("re.search(words, text)", "computes", "Compile patterns once", "/re/__init__.py:search"),
    Story("news.recv(99)", "receives", "setblocking"),
    Story("self.text.tag_add('a', '1.0')", "computes", "Break long lines", f"{TEXT}.tag_add", loop="tk"),
    Story("psutil.net_connections()", "opens", "interval=None", "psutil/__init__.py:net_connections"),
    Story("jwt.decode(token, key)", "computes", "where its cache has none", "jwt/api_jwt.py:decode"),
    Story(
        "jsonable_encoder(rows)",
        "computes in Python",
        "JSONResponse(rows)",
        "fastapi/encoders.py:jsonable_encoder",
    ),
    Story(
        "json.dumps(rows)",
        "computes",
        "on the loop",
        "/json/__init__.py:dumps",
        above="starlette/routing.py:app",
    ),
    Story("return rows", "computes", "compresslevel", "starlette/middleware/cors.py:send", function=""),
    Story("self.status(node)", "computes", "raise `AttributeError`", function="__getattr__"),
    Story("self.status(node)", "computes", "raise `AttributeError`", function="get", above=ASKS),
    Story("self.pages()", "computes", "IPython shows", function="_repr_html_"),
    Story("self.nodes(name)", "computes", "rich asks", function="render", above="rich/protocol.py:rich_cast"),
    Story(
        "app.exec()",
        "computes in Python",
        "ticks",
        "matplotlib/lines.py:Line2D.draw matplotlib/axes.py:draw",
        loop="qt",
    ),
    Story(
        "model.encode(x)",
        "computes without the GIL",
        "Load the model",
        "torch/nn/modules/module.py:_call_impl",
    ),
    Story("template.render(x=2)", "computes", "Compile templates", "jinja2/environment.py:Template.render"),
    Story(
        "Order.model_validate(x)", "computes", "at module level", "pydantic/main.py:BaseModel.model_validate"
    ),
    Story(
        "jsonschema.validate(a, B)",
        "computes in Python",
        "Make the validator once",
        "jsonschema/_keywords.py:items",
    ),
    Story(
        "yaml.load(text, Loader=CSafeLoader)",
        "computes",
        "CSafeLoader`",
        "yaml/constructor.py:construct yaml/__init__.py:load",
    ),
    Story("message.ParseFromString(x)", "computes", "upb"),
    Story(
        "BeautifulSoup(text)", "computes", "with lxml", "bs4/builder/_lxml.py:feed bs4/__init__.py:__init__"
    ),
    Story(
        "canvas.draw()",
        "computes in Python",
        "process pool",
        "matplotlib/figure.py:Figure.draw matplotlib/backend_bases.py:draw",
        loop="qt",
    ),
    Story(
        "s3.list_buckets()",
        "computes",
        "Make clients once",
        "botocore/parsers.py:parse botocore/client.py:_api_call",
    ),
    Story("await request.body()", "computes", "orjson", "starlette/requests.py:Request.body"),
    Story(
        "self.figure.savefig(path)", "computes", "process", "matplotlib/figure.py:Figure.savefig", loop="tk"
    ),
    Story("tables.read(path)", "opens", "aiofiles", "pandas/io/common.py:get_handle"),
    Story("port.read(8)", "polls", "pyserial-asyncio"),
    Story("child.expect('# ')", "computes", "async_=True", "pexpect/expect.py:search"),
    Story("return rows", "computes", "cryptg", "telethon/client/updates.py:_handle_update", function=""),
    Story("return rows", "computes", "TgCrypto", "pyrogram/parser/html.py:parse", function=""),
    Story(
        "zlib.compress(page)",
        "computes without the GIL",
        "compression=None",
        above="websockets/server.py:handler",
    ),
    Story(
        "load_workbook(path, read_only=True)",
        "computes in Python",
        "keeps no cells",
        "openpyxl/reader/excel.py:load_workbook",
    ),
    Story(
        "BeautifulSoup(page, from_encoding='cp1251')",
        "computes",
        "from_encoding",
        "chardet/a.py:detect bs4/dammit.py:detect",
    ),
    Story("s3.get_object(Key=k)", "computes", "Make clients once", ASYNC_CALLS),
    Story("s3.get_object(Key=k)", "collects garbage", "Make clients once", ASYNC_CALLS),
    Story("client.publish(news)", "receives", "connect_async", "paho/mqtt/client.py:Client.publish"),
    Story("parse(text)", "computes", "complete_in_thread", function="get_completions"),
    Story(
        "parse(text)",
        "computes",
        "complete_in_thread",
        function="accept",
        above="prompt_toolkit/buffer.py:Buffer.validate_and_handle",
    ),
    Story("search(text)", "computes", "ThreadedAutoSuggest", function="get_suggestion"),
    Story("logger.info(order)", "computes", "enqueue", "loguru/_logger.py:Logger._log"),
    Story("tell(message)", "receives", "enqueue", function="send"),
    Story(
        "connection.execute(query)",
        "computes in Python",
        "as parameters",
        "sqlalchemy/sql/compiler.py:SQLCompiler.visit_select sqlalchemy/engine/base.py:Connection.execute",
    ),
    Story(
        "connection.execute(query)",
        "computes in Python",
        "Select columns",
        "sqlalchemy/sql/compiler.py:SQLCompiler.visit_select sqlalchemy/engine/base.py:Connection.execute",
    ),
    Story("client.create(question)", "child", "bearer", f"{PROVIDER}AzureOpenAI._get_azure_ad_token"),
    Story("litellm.token_counter(m)", "computes without the GIL", "pre_call", COUNTS),
    Story("canvas.draw()", "computes in Python", "loc=", f"{LEGEND}.draw", loop="qt"),
    Story("return rows", "computes in Python", "use_jedi", f"{COMPLETES}.python_matches", function=""),
    Story("jedi.Script(text)", "computes in Python", "use_jedi", "jedi/api/completion.py:complete"),
    Story("stub.Get(request)", "lock", "init_gevent", "grpc/_channel.py:__call__"),
    Story("session.get(url)", "polls", "gevent", FETCHES),
    Story("log.error('x')", "computes in Python", "plain_traceback", "structlog/processors.py:render"),
    Story("await store.get(1)", "computes in Python", "in batches", "redis/asyncio/client.py:Redis.execute"),
    Story("ask(text)", "child", "invalidate", function="show_toolbar"),
    Story("return rows", "computes in Python", "`compute_etag`", f"{FILES}.get", function=""),
    Story("job.result()", "lock", "async_execute", "/threading.py:wait /concurrent/futures/_base.py:result"),
    # gevent's patching does not reach what waits in C.
    Story("cursor.execute(query)", "polls", "patch_all", "psycopg2/extras.py:Cursor.execute", loop="gevent"),
    # What a record's text takes is taken on this thread, with a queue behind it as well.
    Story("log.info(rows)", "computes", "to_thread", "/logging/__init__.py:Formatter.format"),
    Story("log.info(rows)", "computes", "QueueHandler", "/logging/__init__.py:Formatter.format"),
    # An object that is made and kept need not be one that goes from process to process.
    Story("Engine()", "computes in Python", "process", "pysnmp/entity/engine.py:Engine.__init__"),
    Story(
        "pool.join()",
        "child",
        "before `join`",
        "/multiprocessing/process.py:BaseProcess.join /multiprocessing/pool.py:Pool.join",
    ),
    Story("process.wait()", "child", "before `join`", "/subprocess.py:_wait /subprocess.py:wait"),
    # A name like a package's, of another object; a function of a package, and not a method of any object.
    Story("requests.get(1)", "computes", "httpx"),
    Story("np.sort(rows)", "computes", "bisect", head="import numpy as np"),
    # What cannot be followed: an awaited coroutine of a package, a widget's method, a package's own line.
    Story("image.resize(2)", "computes without the GIL", "QThread", loop="qt"),
    Story("self.view.resizeColumnsToContents()", "computes without the GIL", "QThread", loop="qt"),
    Story("self.view.setModel(rows)", "computes in Python", "QThread", "plots/model.py:data", loop="qt"),
    Story("return rows", "receives", "to_thread", "requests/api.py:get pusher/feed.py:push", function=""),
    # A package resolves names, or starts a child: the program makes no such call.
    Story("check(mail)", "polls", "getaddrinfo", "dns/resolver.py:resolve addresses/check.py:check"),
    Story("repo.fetch()", "child", "create_subprocess", "/subprocess.py:wait git/cmd.py:execute"),
]
STORIES += PROVED


def placed(entry, further=0):
    path, _, function = entry.rpartition(":")
    if path == "importlib._bootstrap":
        return frame(function, f"<frozen {path}>", 10)
    return frame(function, f"{STDLIB if path.startswith('/') else SITE}/{path.lstrip('/')}", 10 + further)


def told(story):
    source = f"{story.head}\ndef {story.function}():\n    {story.before}\n    {story.call}\n"
    moves = story.does == "computes in Python"
    here = at(story.call, source, function=story.function or "handler")
    stacks = [
        stack(
            *[placed(entry, index * moves) for entry in story.below.split()],
            *([here] if story.function else []),
            *map(placed, story.above.split()),
        )
        for index in range(12)
    ]
    return judged(evidence(samples(*stacks, **KERNEL[story.does]), loop_kind=story.loop), source)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.call)
def test_the_stall_leads_to_its_remedy(story):
    stall = told(story)
    assert story.says in stall.advice, (stall.cause, stall.evidence)
    assert "{" not in stall.advice


@pytest.mark.parametrize(
    "story",
    [
        Story("zone.localize(moment)", "computes", "fromisoformat", "pytz/tzinfo.py:localize"),
        Story("moment.shift(days=1)", "computes", "fromisoformat", "dateutil/relativedelta.py:__radd__"),
        Story(
            "client.sync()",
            "receives",
            "its API is that of requests",
            "requests/api.py:get vendor/sync.py:sync",
        ),
        Story("names(paths)", "computes in Python", "Walk the folders", "/posixpath.py:realpath"),
    ],
    ids=lambda story: story.call,
)
def test_a_package_alone_leads_to_no_advice_about_its_use(story):
    assert story.says not in told(story).advice


@pytest.mark.parametrize("story", ALIKE, ids=lambda story: f"{story.call} {story.below}")
def test_what_looks_alike_does_not_lead_there(story):
    assert story.says not in (told(story).advice or "")


def test_what_runs_in_a_greenlet_of_a_package_proves_a_row():
    call = "await connection.execute(insert.values(rows))"
    here = at(call, source := f"async def handler():\n    {call}\n")
    begins = stack(placed("sqlalchemy/sql/dml.py:ValuesBase.values"), here)
    apart = [
        stack(placed("sqlalchemy/sql/crud.py:_extend_values_for_multiparams", n), loop=False)
        for n in range(9)
    ]
    said = judged(evidence(samples(begins, *apart, running=True, gil=GilState.SELF)), source).advice
    assert "Pass the rows as parameters" in said
    few = [begins] * 12
    said = judged(evidence(samples(*few, *apart, running=True, gil=GilState.SELF)), source).advice
    assert "Pass the rows" not in (said or "")


@pytest.mark.parametrize(
    ("own", "above", "named"),
    [(2, "fastapi/routing.py:app", "encode"), (4, "fastapi/routing.py:app", "handler"), (2, "", "handler")],
    ids=["most is the caller's", "enough is own", "in a greenlet"],
)
def test_what_called_own_code_and_went_on_alone_is_not_its_doing(own, above, named):
    source = "async def handler():\n    rows = [one.dump() for one in items]\n    return rows\n"
    begins = stack(at("one.dump()", source), *map(placed, ["fastapi/routing.py:app"]))
    apart = [
        stack(placed("fastapi/encoders.py:encode", n), *map(placed, above.split()), loop=bool(above))
        for n in range(8)
    ]
    stall = judged(evidence(samples(*[begins] * own, *apart, running=True, gil=GilState.SELF)), source)
    assert stall.culprit.function == named


def test_advice_against_the_call_and_its_garbage_is_given_once():
    call = "session.resource('s3')"
    here = at(call, source := f"def handler():\n    {call}\n")
    makes = stack(*map(placed, MAKES_CLIENT.split()), here)
    every = samples(*[makes] * 40, running=True, gil=GilState.SELF)
    taken = tuple(
        replace(sample, in_gc=index < 22, gc_total_ns=min(index, 22) * 10 * MS)
        for index, sample in enumerate(every)
    )
    stall = judged(evidence(taken), source)
    assert (stall.cause, stall.second_cause) == (Cause.NATIVE_CPU, Cause.GC)
    assert stall.advice.count("Make clients once") == 1


LIBRARIES = [row for file in sorted(FOLDER.glob("*.toml")) for row in read_rows(file)]
EVERY = list({row.id: row for row in (*REMEDIES, *LIBRARIES)}.values())
CALLS = [remedy for remedy in EVERY if remedy.calls or remedy.modules or remedy.needs]
LOOPS = sorted({remedy.loop for remedy in REMEDIES} - {"", "asyncio"})
BY_WAY = [remedy for remedy in REMEDIES if remedy.way and remedy.loop and not remedy.causes]


ALL = registered(frozenset(file.stem for file in FOLDER.glob("*.toml")))


def row_of(cause, call):
    return find_remedy(ALL, cause, Blocker(call=call, function=None), {})


def test_every_row_for_a_call_has_a_story():
    advised = {told(story).advice for story in STORIES}
    calls = [story.call for story in STORIES]
    for remedy in CALLS:
        assert {remedy.text.replace("{call}", call) for call in calls} & advised, remedy.id


def test_every_name_of_a_call_leads_to_its_row():
    for remedy in CALLS:
        for name in () if remedy.needs else remedy.calls:
            found = [row_of(cause, f"{name.replace('*', 'thing')}()") for cause in remedy.causes or Cause]
            assert any(row is not None and name in row.calls for row in found), name


def test_every_module_leads_to_its_row():
    for remedy in CALLS:
        for module in remedy.modules:
            found = [find_remedy(ALL, cause, None, {(module,): 1}) for cause in remedy.causes or Cause]
            assert remedy.needs or remedy.id in {row.id for row in found if row}, (remedy.id, module)


def test_every_other_row_is_reached_by_what_it_is_about():
    table = registered()
    for remedy in set(EVERY) - set(CALLS):
        about = (remedy.topic,) if remedy.topic else (*remedy.causes,) or (remedy.way,)
        assert remedy.within or [table.about(one, remedy.loop) for one in about] == [remedy], remedy.id


def test_no_row_is_there_twice():
    for column in ("id", "text"):
        values = [getattr(remedy, column) for remedy in EVERY if not remedy.way or column == "id"]
        assert sorted(values) == sorted(set(values))


@pytest.mark.parametrize("remedy", EVERY, ids=lambda remedy: remedy.id)
def test_a_row_is_a_plain_sentence(remedy):
    assert re.fullmatch(r"[A-Z`].*[^.]\.", remedy.text)
    assert set(re.findall(r"\{(\w*)\}", remedy.text)) <= {"call", "holder", "at", "slow", "block"}
    assert "{call}" not in remedy.text.replace("`{call}`", "")
    assert remedy.text.count("`") % 2 == 0
    assert "  " not in remedy.text
    # "make `f` an `async def` and run ..."
    assert not remedy.needs_coroutine or remedy.text.split()[0] not in {"It", "The", "On", "This"}


def test_rows_in_place_of_others_name_rows_that_exist():
    known = {remedy.id for remedy in EVERY} | {way.name.lower() for way in Way}
    assert {name for remedy in EVERY for name in remedy.replaces} <= known


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[client]\nway = 'client'\n", "acme.toml: [client] text: it is missing"),
        ("[client]\ntext = 'Do.'\nmodule = 'a'\n", "acme.toml: [client] module: there is no 'module'"),
        ("[client]\ntext = 'Do.'\nway = 'hop'\n", "acme.toml: [client] way: there is no 'hop'"),
        ("[client]\ntext = 'Do.'\ncauses = 'cpu rain'\n", "acme.toml: [client] causes: there is no 'rain'"),
        ("[client]\ntext = 'Do.'\nneeds = {below = 'a'}\n", "acme.toml: [client] needs: there is no 'below'"),
        ("[client]\ntext = 3\n", "acme.toml: [client] text: 3 has the wrong type"),
        ("text = 'Do.'\n", "acme.toml: [text]: it is not a table"),
        ("like = 'nothing'\n", "acme.toml: like: it is the only key, and names another file"),
        ("[client\n", "acme.toml: Expected"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path, text, says):
    file = tmp_path / "acme.toml"
    file.write_text(text)
    with pytest.raises(LibraryFileError, match=re.escape(says)):
        read_rows(file)


def test_a_file_gives_rows_of_its_package(tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text(
        "[aio]\nway = 'client'\ncauses = 'waiting'\ncalls = 'acme.get'\ntext = 'Use `acme.aio`.'\n"
    )
    [row] = read_rows(file)
    assert (row.id, row.way, row.calls, row.modules) == ("acme.aio", Way.CLIENT, ("acme.get",), ("acme",))


def test_the_sentence_of_a_librarys_row_is_said_anew():
    said = coded({"advice": told(next(story for story in STORIES if "psycopg2" in story.call)).advice})
    assert said["said"]["advice"][0] == "try:psycopg2.client"
    assert "asyncpg" in spoken({**said, "advice": "?"})["advice"]


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
        ("thread", "thread", "job queue"),
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
