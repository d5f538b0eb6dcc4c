"""Flask: a request is a piece of work on its thread, from the application's call to its answer; the rule that
fits is its scene."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from loopcanary.integrations.patches import Patches
from loopcanary.integrations.telling import Telling, route_name
from loopcanary.integrations.wsgi_work import around_application


def patch(patches: Patches, tell: Telling) -> None:
    flask: Any = sys.modules["flask.app"].Flask
    patches.wrap(flask, "__call__", lambda original: around_application(original, "Flask request", tell))
    patches.wrap(flask, "full_dispatch_request", lambda original: _around_dispatch(original, tell))


def _around_dispatch(original: FunctionType, tell: Telling) -> Any:
    def full_dispatch_request(self: Any, *args: Any, **kwargs: Any) -> Any:
        tell.scene(_name)
        return original(self, *args, **kwargs)

    return full_dispatch_request


def _name() -> str | None:
    request: Any = sys.modules["flask.globals"].request
    rule = request.url_rule
    return None if rule is None else route_name(request.method, rule.rule)
