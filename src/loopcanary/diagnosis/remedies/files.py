"""Remedies for files, archives and folders. Data."""

from __future__ import annotations

from loopcanary.diagnosis.remedies.kinds import FILES, Remedy, Way
from loopcanary.model import Cause

_WAITING_FOR_FILES = frozenset({Cause.DISK_IO, Cause.UNKNOWN})

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        names=("os.fsync", "os.fdatasync", "os.sync", "*.flush"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Sync with `await asyncio.to_thread(os.fsync, ...)`, once for many writes.",
    ),
    Remedy(
        modules=("shutil",),
        names=("shutil.copyfile", "shutil.copy", "shutil.copytree", "shutil.rmtree", "shutil.move"),
        causes=FILES,
        way=Way.THREAD,
        asyncio="Run `{call}` with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        names=("os.listdir", "os.scandir", "os.walk", "glob.glob", "*.iterdir", "*.rglob", "*.glob"),
        modules=("glob", "fnmatch"),
        causes=FILES,
        way=Way.THREAD,
        asyncio="List folders with `await asyncio.to_thread(...)`: a large or remote one takes long.",
    ),
    Remedy(
        names=("os.stat", "os.lstat", "*.exists", "*.is_file", "*.is_dir", "os.access", "os.path.getsize"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Ask the file system with `await asyncio.to_thread(...)`: a network share answers late.",
    ),
    Remedy(
        names=("os.rename", "os.replace", "os.unlink", "os.remove", "*.unlink", "os.makedirs", "os.rmdir"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Change folders with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        names=("*.read_text", "*.read_bytes", "*.write_text", "*.write_bytes"),
        modules=("pathlib",),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Run `{call}` with `await asyncio.to_thread(...)`, or use `anyio.Path`.",
    ),
    Remedy(
        modules=("tempfile",),
        names=("tempfile.mkstemp", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Make temporary files with `await asyncio.to_thread(...)`, or aiofiles' `tempfile`.",
    ),
    Remedy(
        names=("open", "io.open", "codecs.open", "gzip.open"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Open the file with `await asyncio.to_thread(open, ...)`, or use aiofiles.",
    ),
    Remedy(
        names=("*.read", "*.readline", "*.readlines", "os.read", "os.pread", "*.readinto", "os.sendfile"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Read the file with `await asyncio.to_thread(...)`, or use aiofiles.",
    ),
    Remedy(
        names=("*.write", "*.writelines", "os.write", "os.pwrite", "*.truncate"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Write the file with `await asyncio.to_thread(...)`, or use aiofiles.",
    ),
    Remedy(
        modules=("zipfile", "tarfile"),
        names=("zipfile.ZipFile", "tarfile.open", "*.extractall", "*.extract"),
        causes=FILES,
        way=Way.THREAD,
        asyncio="Pack and unpack with `await asyncio.to_thread(...)`.",
    ),
    Remedy(
        names=("mmap.mmap", "*.msync"),
        modules=("mmap",),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Touch mapped files on another thread, or have them read ahead (`madvise(MADV_WILLNEED)`).",
    ),
    Remedy(
        modules=("watchdog", "watchfiles", "fsspec", "s3fs", "smart_open"),
        causes=frozenset({Cause.DISK_IO, Cause.NETWORK_IO, Cause.LOCK, Cause.UNKNOWN}),
        way=Way.THREAD,
        asyncio="Use the package's async side (`watchfiles.awatch`, fsspec's `asynchronous=True`), or a "
        "thread.",
    ),
    Remedy(
        names=("os.urandom", "secrets.token_bytes", "random.SystemRandom"),
        causes=_WAITING_FOR_FILES,
        way=Way.THREAD,
        asyncio="Draw random bytes on another thread: at start-up the kernel may lack entropy.",
    ),
)
