"""WSGI servers that keep the application in an attribute: cheroot, which is CherryPy's, waitress, and that of
werkzeug, which is Flask's for development."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling
from loopcanary.integrations.wsgi_work import timed

_SERVERS = (
    ("cheroot.wsgi", "Server", "wsgi_app"),
    ("waitress.server", "BaseWSGIServer", "application"),
    ("werkzeug.serving", "BaseWSGIServer", "app"),
)


def patch(patches: Patches, tell: Telling) -> None:
    """One of the modules is imported; each may be."""
    for module, name, attribute in _SERVERS:
        owner = getattr(sys.modules.get(module), name, None)
        if owner is not None:
            _time_servers(patches, owner, attribute, tell)


def _time_servers(patches: Patches, owner: type, attribute: str, tell: Telling) -> None:
    """Patches a class of servers, which call the attribute's value as of their making."""

    def around(original: FunctionType) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(self, *args, **kwargs)
            setattr(self, attribute, timed(getattr(self, attribute), tell))

        return __init__

    patches.wrap(owner, "__init__", around)
