"""A handler imports its plug-ins, which were never compiled."""

from __future__ import annotations

import importlib
import sys
import tempfile

from zoo.stage import measured, run

EXPECT = {"cause": ["import"], "loops": "all"}
PLUGINS = (
    "mailbox", "xmlrpc.client", "tarfile", "pickletools", "http.cookiejar", "ftplib", "imaplib", "optparse",
    "statistics", "xml.dom.minidom", "_pydecimal",
)  # fmt: skip


def load_plugins():
    for name in PLUGINS:
        try:
            importlib.import_module(name)  # <- culprit
        except ImportError:
            continue


async def handler():
    with measured():
        load_plugins()


if __name__ == "__main__":
    # A watcher may import and compile until the end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        sys.pycache_prefix = folder
        for plugin in PLUGINS:  # a watcher may have imported it
            sys.modules.pop(plugin, None)
        run(handler)
