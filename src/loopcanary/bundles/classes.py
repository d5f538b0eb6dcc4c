"""The classes of what can be redacted."""

from __future__ import annotations

CLASSES = {
    "paths": "files, folders and sockets by path",
    "names": "functions, callbacks, tasks, scenes, threads, commands, the program and its version",
    "source": "calls as they are written",
    "args": "what calls are given: only what is called is left",
    "hosts": "the host, peers, user and network",
    "fingerprints": "the identities of bugs",
}
ALL = "all"
