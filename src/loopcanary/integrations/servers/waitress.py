"""waitress."""

from __future__ import annotations

import sys

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling
from loopcanary.integrations.wsgi_work import time_servers


def patch(patches: Patches, tell: Telling) -> None:
    time_servers(patches, sys.modules["waitress.server"].BaseWSGIServer, "application", tell)
