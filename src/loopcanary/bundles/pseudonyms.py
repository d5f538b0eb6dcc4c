"""Pseudonyms: the same for the same name and key, and nobody without the key can find the name.

They are keyed hashes (HMAC-SHA-256, RFC 2104), because names of files and functions are few enough to be
guessed, hashed and compared. Only the owner of the key can do that.
"""

from __future__ import annotations

import hmac
import os
import re
import sys
import sysconfig
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from loopcanary.bundles.layout import BundleError

KEY_BYTES = 32
_KEY_LEAST = 16
_DIGITS = 10
_CACHED = 1 << 16

_PART = re.compile(r"[A-Za-z_]\w*|<\w+>")
_SYNTHETIC = re.compile(r"<(?:module|lambda|locals|listcomp|dictcomp|setcomp|genexpr)>")
_GIVEN_BY_PYTHON = re.compile(
    r"MainThread|(?:Thread|Dummy|Task)-[0-9]+|ThreadPoolExecutor-[0-9]+_[0-9]+|asyncio_[0-9]+|lock|RLock"
    r"|multiprocessing\.(?:Lock|RLock|Semaphore)"
)
_STDLIB_FILE = re.compile(r".*[/\\]python3\.[0-9]+[/\\](?P<inside>[\w./\\]+\.py)")
_FROZEN = re.compile(r"<frozen (?P<module>[\w.]+)>")
_FROZEN_MODULES = frozenset(
    (
        "importlib._bootstrap",
        "importlib._bootstrap_external",
        "zipimport",
        "runpy",
        "os",
        "codecs",
        "abc",
        "io",
    )
)


class Pseudonyms:
    def __init__(self, key: bytes) -> None:
        self._key = key
        # Frames repeat: a stack of a hundred is hashed once for all its samples.
        self.of = lru_cache(maxsize=_CACHED)(self._of)
        self.name = lru_cache(maxsize=_CACHED)(self._name)
        self.path = lru_cache(maxsize=_CACHED)(self._path)

    def _of(self, word: str, text: str) -> str:
        """`host-3f9a1c2b7e`: the word, and ten digits of the text's hash."""
        digest = hmac.digest(self._key, f"{word}\0{text}".encode("utf-8", "surrogatepass"), "sha256")
        return f"{word}-{digest.hex()[:_DIGITS]}"

    def _name(self, text: str) -> str:
        """Replaces each part of a dotted name, so that a function has the same one in a qualified name. Names
        that Python gives itself (`MainThread`, `<module>`) stay."""
        if not text or _GIVEN_BY_PYTHON.fullmatch(text):
            return text
        parts = text.split(".")
        if not all(_PART.fullmatch(part) for part in parts):
            return self._of("name", text)
        return ".".join(part if _SYNTHETIC.fullmatch(part) else self._of("name", part) for part in parts)

    def _path(self, text: str) -> str:
        """`path-3f9a1c2b7e.py`; a file of the standard library keeps its place in it."""
        if not text:
            return text
        public = public_file(text)
        return (
            public if public is not None else self._of("path", text) + (".py" if text.endswith(".py") else "")
        )


@lru_cache(maxsize=_CACHED)
def public_file(path: str) -> str | None:
    """`<stdlib>/json/decoder.py` for a file that this Python's standard library has, too: its names are not
    secret. None: any other file."""
    if (frozen := _FROZEN.fullmatch(path)) is not None:
        return path if frozen["module"] in _FROZEN_MODULES else None
    match = _STDLIB_FILE.fullmatch(path)
    if match is None:
        return None
    inside = match["inside"].replace("\\", "/")
    parts = inside.split("/")
    if ".." in parts or parts[0].removesuffix(".py") not in sys.stdlib_module_names:
        return None
    here = Path(sysconfig.get_path("stdlib"), *parts)
    return f"<stdlib>/{inside}" if here.is_file() else None


def load_key(path: Path, *, make: bool) -> bytes:
    """The key in a file, which is made for this user alone if that is wanted. BundleError."""
    try:
        if make and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(os.urandom(KEY_BYTES).hex().encode() + b"\n")
        key = path.read_bytes().strip()
    except OSError as error:
        raise BundleError(
            f"the key of pseudonyms, {path}, cannot be read: {error.strerror or error}; "
            "name a file of your own with --redact-key"
        ) from error
    if len(key) < _KEY_LEAST:
        raise BundleError(f"{path} is not a key: write {_KEY_LEAST} or more random characters into it")
    return key
