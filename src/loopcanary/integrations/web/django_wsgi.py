"""Django on a WSGI server: when its application is made; a request is a piece of work on its thread."""

from __future__ import annotations

import sys

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling
from loopcanary.integrations.wsgi_work import around_application


def patch(patches: Patches, tell: Telling) -> None:
    handler = sys.modules["django.core.handlers.wsgi"].WSGIHandler
    patches.wrap(handler, "__init__", tell.around_making)
    patches.wrap(handler, "__call__", lambda original: around_application(original, "Django request", tell))
