/* The main thread outside of turns: a program that does not start (an import that hangs, before its first loop),
 * or does not end (asyncio.run, threading._shutdown and exit functions, once a loop ran on the main thread).
 *
 * Either is a slot with samples of the main thread and the stacks of all others, as of a stall. It is opened
 * only where that is certain:
 *   start   an import is on the stack, the thread has not run for `boot_ns` (so it has read nothing either), and
 *           waits without a timeout for a connection's peer, for a lock on a file, for a dead disk; or for a lock,
 *           as below
 *   end     no thread of the process has run for `exit_ns`, and each waits, without a timeout, for a lock of
 *           this process: none can wake another (core/waits/closed_process.h). After an interrupt: none has run
 *           for more than a moment
 */
#pragma once

#include "core/watchdog/watch_state.h"

/* After a look at all lanes. Answers when it wants to look again; LC_NO_DEADLINE: not by itself. `are_idle`: the
 * watchdog is about to park. The main thread's stack is looked at then, and from there on a few times in
 * `boot_ns` or `exit_ns` while the program starts or ends. */
uint64_t lc_outside_look(lc_watchdog *watchdog, uint64_t now_ns, bool are_idle);
