"""gunicorn's workers that serve on threads: sync and gthread. The others run a watched loop."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling
from loopcanary.integrations.wsgi_work import timed

_ON_THREADS = frozenset({"gunicorn.workers.sync", "gunicorn.workers.gthread"})


def patch(patches: Patches, tell: Telling) -> None:
    def around(original: FunctionType) -> Any:
        def load_wsgi(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if any(base.__module__ in _ON_THREADS for base in type(self).__mro__):
                self.wsgi = timed(getattr(self, "wsgi", None), tell)
            return result

        return load_wsgi

    patches.wrap(sys.modules["gunicorn.workers.base"].Worker, "load_wsgi", around)
