"""Remedies for waiting on peers: HTTP, mail, clouds, brokers, shells, sockets, names. Data."""

from __future__ import annotations

from loopcanary.diagnosis.remedies.kinds import WAITING, Remedy, Way
from loopcanary.model import Cause

_NAMES = frozenset({Cause.DNS, Cause.UNKNOWN})

_IN_AIOHTTP = (
    ("aiohttp", "Use the application's `aiohttp.ClientSession`, or `await asyncio.to_thread(...)`."),
)

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        modules=("requests", "requests_toolbelt", "requests_cache"),
        names=("requests.get", "requests.post", "requests.put", "requests.delete", "requests.request"),
        way=Way.CLIENT,
        asyncio="Use `httpx.AsyncClient` (its API is that of requests), or `await asyncio.to_thread(...)`.",
        within=_IN_AIOHTTP,
    ),
    Remedy(
        modules=("urllib.request",),
        names=("urllib.request.urlopen", "request.urlopen", "urlopen", "urlretrieve"),
        way=Way.CLIENT,
        asyncio="Use `httpx.AsyncClient` or aiohttp, or `await asyncio.to_thread(urlopen, ...)`.",
        within=_IN_AIOHTTP,
    ),
    Remedy(
        modules=("openai", "anthropic", "mistralai", "cohere"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the package's async client (`AsyncOpenAI`, `AsyncAnthropic`): the same methods, "
        "awaited.",
    ),
    Remedy(
        modules=("boto3", "botocore", "s3transfer"),
        names=("s3.upload_file", "s3.download_file", "client.put_object"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aioboto3, or run the call with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("google.cloud", "google.api_core", "googleapiclient"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the service's `AsyncClient` where there is one, or `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("azure",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the client of the package's `aio` namespace, such as `azure.storage.blob.aio`.",
    ),
    Remedy(
        modules=("elasticsearch", "elastic_transport", "opensearchpy"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use `AsyncElasticsearch` (or `AsyncOpenSearch`): the same methods, awaited.",
    ),
    Remedy(
        modules=("kafka",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aiokafka's `AIOKafkaConsumer` and `AIOKafkaProducer`.",
    ),
    Remedy(
        names=("consumer.poll", "producer.flush", "consumer.consume"),
        modules=("confluent_kafka",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Run the consumer's `poll` on a thread of its own, or use aiokafka.",
    ),
    Remedy(
        modules=("pika", "amqp", "kombu"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aio-pika; from Celery code, send the task with `await asyncio.to_thread(task.delay, "
        "...)`.",
    ),
    Remedy(
        modules=("celery",),
        names=("task.delay", "task.apply_async", "AsyncResult.get"),
        causes=WAITING,
        way=Way.THREAD,
        asyncio="Send the task with `await asyncio.to_thread(task.delay, ...)`, and never wait for its "
        "result here.",
    ),
    Remedy(
        modules=("paho",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aiomqtt, or paho's `loop_start()`, which runs on a thread of its own.",
    ),
    Remedy(
        modules=("nats", "stomp", "zmq"),
        names=("zmq.Socket.recv", "socket.recv_multipart", "socket.recv_json"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the package's asyncio side, such as `zmq.asyncio.Context`.",
    ),
    Remedy(
        modules=("paramiko", "netmiko"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use asyncssh, or run the call with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("smtplib",),
        names=("smtp.sendmail", "smtp.send_message", "server.sendmail"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aiosmtplib, or send the mail with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("imaplib", "poplib"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aioimaplib, or fetch the mail with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("ftplib", "telnetlib"),
        names=("ftp.retrbinary", "ftp.storbinary"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aioftp, or run the transfer with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("ldap3", "ldap"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use bonsai's asyncio client, or run the query with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("xmlrpc", "zeep", "suds"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Run the call with `await asyncio.to_thread(...)` (zeep has an `AsyncClient`).",
    ),
    Remedy(
        modules=("grpc",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use `grpc.aio`: its channels and stubs are awaited.",
    ),
    Remedy(
        modules=("websocket", "websockets.sync", "socketio"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use `websockets.connect` (asyncio), or python-socketio's `AsyncClient`.",
    ),
    Remedy(
        modules=("docker",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use aiodocker, or run the call with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("kubernetes",),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use kubernetes_asyncio: the same API, awaited.",
    ),
    Remedy(
        modules=("stripe", "twilio", "slack_sdk", "telebot", "github", "gitlab", "hvac", "consul"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use the package's async client where it has one, or `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        modules=("httpx",),
        names=("httpx.get", "httpx.post", "httpx.request"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use `httpx.AsyncClient` and await its calls: `httpx.Client` blocks.",
    ),
    Remedy(
        names=("getaddrinfo", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyname_ex"),
        causes=_NAMES,
        way=Way.RESOLVE,
        asyncio="Resolve names with `await loop.getaddrinfo(...)` in place of `{call}`.",
    ),
    Remedy(
        names=("socket.gethostbyaddr", "socket.getnameinfo", "socket.getfqdn"),
        causes=_NAMES,
        way=Way.RESOLVE,
        asyncio="Resolve addresses with `await loop.getnameinfo(...)` in place of `{call}`.",
    ),
    Remedy(
        modules=("dns",),
        causes=WAITING,
        way=Way.RESOLVE,
        asyncio="Use `dns.asyncresolver` of dnspython, or `await loop.getaddrinfo(...)`.",
    ),
    Remedy(
        modules=("http.client", "urllib3", "httplib2"),
        names=("http.request", "pool.request", "pool.urlopen"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use an async client such as `httpx.AsyncClient`, or `await asyncio.to_thread(...)`.",
        within=_IN_AIOHTTP,
    ),
    Remedy(
        names=("ssl.wrap_socket", "*.do_handshake", "*.wrap_socket", "ssl.get_server_certificate"),
        modules=("ssl", "OpenSSL"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Open TLS connections with `await asyncio.open_connection(..., ssl=...)`.",
    ),
    Remedy(
        names=("socket.create_connection", "sock.connect", "s.connect", "*.connect_ex"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Connect with `await asyncio.open_connection(...)`, or `await loop.sock_connect(...)`.",
    ),
    Remedy(
        names=("*.recv", "*.recv_into", "*.recvfrom", "*.sendall", "*.accept", "*.makefile"),
        modules=("socket", "socketserver"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Use asyncio's streams, or `await loop.sock_recv(...)` and `loop.sock_sendall(...)`.",
    ),
    Remedy(
        names=("select.select", "select.poll", "selector.select"),
        causes=WAITING,
        way=Way.CLIENT,
        asyncio="Let the loop watch the descriptor: `loop.add_reader` and `loop.add_writer`.",
    ),
)
