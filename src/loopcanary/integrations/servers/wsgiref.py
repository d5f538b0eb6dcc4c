"""wsgiref, and servers that are built on it, such as Django's runserver."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling
from loopcanary.integrations.wsgi_work import timed


def patch(patches: Patches, tell: Telling) -> None:
    def around(original: FunctionType) -> Any:
        def run(self: Any, application: Any) -> None:
            original(self, timed(application, tell))

        return run

    patches.wrap(sys.modules["wsgiref.handlers"].BaseHandler, "run", around)
