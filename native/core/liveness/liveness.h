/* What follows from a loop that makes no progress: the service manager is not fed, and the process may end
 * itself. */
#pragma once

#include "core/watchdog/watch_state.h"

/* After a look at all lanes, at `now_ns`. Answers when it wants to look again; LC_NO_DEADLINE: not before
 * work begins or ends. */
uint64_t lc_liveness_look(lc_watchdog *watchdog, uint64_t now_ns);
