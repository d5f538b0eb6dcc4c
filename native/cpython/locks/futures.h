/* Where the result of a concurrent.futures.Future comes from that a thread waits for. */
#ifndef LOOPCANARY_FUTURES_H
#define LOOPCANARY_FUTURES_H

#include "cpython/source/cpython_source.h"

/* The Future whose `result` or `exception` a thread is in, and which has none yet; 0: it is in none. */
uint64_t lc_future_waited_for(lc_cpython_source *source, uint64_t thread_state);

/* Whether the Future's result comes from this thread: it runs the pool's work item of this very Future, or the asyncio loop that
 * its coroutine was given to by run_coroutine_threadsafe. In this process only. As of lc_lock: no GIL, lock, allocation. */
bool lc_future_comes_from(lc_cpython_source *source, uint64_t future, uint64_t thread_state);

#endif
