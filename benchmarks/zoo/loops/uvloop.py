"""uvloop: asyncio's programs on another loop."""

from __future__ import annotations

import uvloop

from zoo.loops.asyncio import AsyncioHost

HOST = AsyncioHost(uvloop.new_event_loop)
