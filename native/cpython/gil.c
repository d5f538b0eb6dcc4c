/* The GIL as a watcher sees it: Include/internal/pycore_gil.h, struct _gil_runtime_state. */
#include <pthread.h>

#include "snapshot.h"
#include "threads.h"

#define TRIES 3u

/* cond, mutex, switch_cond, switch_mutex, in a row. A thread that asks for the GIL waits on the
 * first two; one that was made to give it up waits on the other two until somebody has it, before it asks
 * again: that is waiting for the GIL as well. */
#define WAIT_BYTES (2u * (sizeof(pthread_cond_t) + sizeof(pthread_mutex_t)))

static uint64_t gil_address(const lc_cpython_source *source, uint64_t interp)
{
    const lc_layout *l = &source->layout;
    if (l->interp_gil == LC_ABSENT) {
        return source->at.runtime + l->runtime_gil;
    }
    uint64_t address = 0; /* threads of a subinterpreter may have a GIL of their own */
    return lc_read(source->reader, interp + l->interp_gil, &address, 8) ? address : 0;
}

typedef struct {
    uint64_t holder;
    int32_t locked; /* -1: not made yet */
} gil_words;

static bool read_gil(const lc_cpython_source *source, uint64_t address, gil_words *words)
{
    const lc_layout *l = &source->layout;
    uint8_t state[LC_GIL_HEADER_MAX];
    if (address == 0 || address % 8 != 0 ||
        !lc_read(source->reader, address, state, l->gil_locked + 4)) {
        return false;
    }
    words->holder = lc_u64_at(state, l->gil_last_holder);
    words->locked = (int32_t)lc_u32_at(state, l->gil_locked);
    return true;
}

static bool same_holder(const gil_words *a, const gil_words *b)
{
    return a->holder == b->holder && a->locked == b->locked;
}

void lc_gil(lc_cpython_source *source, uint64_t thread_state, lc_gil_view *out)
{
    *out = (lc_gil_view){.state = LC_GIL_UNKNOWN};
    lc_thread_words thread;
    if (!lc_thread_words_read(source, thread_state, &thread)) {
        return;
    }
    const uint64_t address = gil_address(source, thread.interp);
    gil_words now = {0};
    if (!read_gil(source, address, &now)) {
        return;
    }
    out->wait_address_low = address + source->layout.gil_wait;
    out->wait_address_high = out->wait_address_low + WAIT_BYTES;
    for (uint32_t try = 0; try < TRIES; try++) {
        if (now.locked < 0 || now.locked > 1) {
            return;
        }
        if (now.locked == 0 || now.holder == 0) { /* 0: taken this instant, by whom is not said yet */
            out->state = now.locked == 0 ? LC_GIL_FREE : LC_GIL_UNKNOWN;
            return;
        }
        /* The holder may let go and end while it is looked at: believe what did not change. */
        lc_thread_words holder;
        const bool known = lc_thread_words_read(source, now.holder, &holder);
        const gil_words before = now;
        if (!read_gil(source, address, &now)) {
            return;
        }
        if (known && same_holder(&before, &now)) {
            const bool self = now.holder == thread_state;
            out->state = self ? LC_GIL_HELD_BY_SELF : LC_GIL_HELD_BY_OTHER;
            out->holder_thread_state = now.holder;
            out->holder_tid = holder.tid;
            return;
        }
    }
}
