/* The GIL as a watcher sees it: Include/internal/pycore_gil.h, struct _gil_runtime_state. */
#include <pthread.h>

#include "cpython/walker/snapshot.h"
#include "cpython/gil/threads.h"
#include "cpython/walker/walker.h"

#define TRIES 3u

/* cond, mutex, switch_cond, switch_mutex, in a row. A thread that asks for the GIL waits on the
 * first two; one that was made to give it up waits on the other two until another thread has it, before it
 * asks again: that is waiting for the GIL as well. */
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

static gil_words words_in(const lc_layout *layout, const uint8_t *state)
{
    return (gil_words){
        .holder = lc_u64_at(state, layout->gil_last_holder),
        .locked = (int32_t)lc_u32_at(state, layout->gil_locked),
    };
}

static bool read_gil(const lc_cpython_source *source, uint64_t address, gil_words *words)
{
    uint8_t state[LC_GIL_HEADER_MAX];
    if (address == 0 || address % 8 != 0 ||
        !lc_read(source->reader, address, state, source->layout.gil_locked + 4)) {
        return false;
    }
    *words = words_in(&source->layout, state);
    return true;
}

static bool same_holder(const gil_words *a, const gil_words *b)
{
    return a->holder == b->holder && a->locked == b->locked;
}

/* Whether the words alone are an answer: they are unless a thread has the GIL. */
static bool is_free(const gil_words *words, lc_gil_view *out)
{
    out->state = words->locked == 0 ? LC_GIL_FREE : LC_GIL_UNKNOWN;
    return words->locked != 1 || words->holder == 0; /* 0: taken this instant, its holder is not set yet */
}

static void put_holder(const gil_words *words, uint32_t tid, uint64_t thread_state, lc_gil_view *out)
{
    out->state = words->holder == thread_state ? LC_GIL_HELD_BY_SELF : LC_GIL_HELD_BY_OTHER;
    out->holder_thread_state = words->holder;
    out->holder_tid = tid;
}

static void put_wait_range(const lc_cpython_source *source, uint64_t gil, lc_gil_view *out)
{
    out->wait_address_low = gil + source->layout.gil_wait;
    out->wait_address_high = out->wait_address_low + WAIT_BYTES;
}

/* Reads in one call what was found the last time: the thread, which GIL is its interpreter's, that GIL,
 * its holder, and the GIL again; the kernel copies in this order. False: something is not what it was. */
static bool read_as_before(const lc_cpython_source *source, uint64_t thread_state, lc_gil_view *out)
{
    const lc_layout *l = &source->layout;
    const lc_gil_memory *last = &source->walker->gil;
    const uint32_t thread_bytes = l->thread_native_id + 8;
    const uint32_t gil_bytes = l->gil_locked + 4;
    uint8_t thread[LC_THREAD_HEADER_MAX];
    uint8_t holder[LC_THREAD_HEADER_MAX];
    uint8_t state[2][LC_GIL_HEADER_MAX];
    uint64_t gil = last->gil;
    lc_read_request batch[5];
    size_t size = 0;
    if (last->thread_state != thread_state || thread_state == 0) {
        return false;
    }
    batch[size++] = (lc_read_request){thread_state, thread, thread_bytes};
    if (l->interp_gil != LC_ABSENT) {
        batch[size++] = (lc_read_request){last->interp + l->interp_gil, &gil, 8};
    }
    batch[size++] = (lc_read_request){last->gil, state[0], gil_bytes};
    if (last->holder != 0) {
        batch[size++] = (lc_read_request){last->holder, holder, thread_bytes};
        batch[size++] = (lc_read_request){last->gil, state[1], gil_bytes};
    }
    if (source->reader->read(source->reader, batch, size) != size || gil != last->gil ||
        lc_thread_words_in(l, thread).interp != last->interp || !lc_interp_known(source, last->interp)) {
        return false;
    }
    const gil_words first = words_in(l, state[0]);
    put_wait_range(source, gil, out);
    if (is_free(&first, out)) {
        return true;
    }
    const gil_words second = last->holder == 0 ? (gil_words){0} : words_in(l, state[1]);
    const lc_thread_words words = last->holder == 0 ? (lc_thread_words){0} : lc_thread_words_in(l, holder);
    if (first.holder != last->holder || !same_holder(&first, &second) ||
        !lc_interp_known(source, words.interp)) {
        return false;
    }
    put_holder(&second, words.tid, thread_state, out);
    return true;
}

void lc_gil(lc_cpython_source *source, uint64_t thread_state, lc_gil_view *out)
{
    lc_gil_memory *last = &source->walker->gil;
    *out = (lc_gil_view){.state = LC_GIL_UNKNOWN};
    if (read_as_before(source, thread_state, out)) {
        return;
    }
    *out = (lc_gil_view){.state = LC_GIL_UNKNOWN};
    last->thread_state = 0;
    lc_thread_words thread;
    if (!lc_thread_words_read(source, thread_state, &thread)) {
        return;
    }
    const uint64_t address = gil_address(source, thread.interp);
    gil_words now = {0};
    if (!read_gil(source, address, &now)) {
        return;
    }
    put_wait_range(source, address, out);
    *last = (lc_gil_memory){thread_state, thread.interp, address, 0};
    for (uint32_t try = 0; try < TRIES; try++) {
        if (is_free(&now, out)) {
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
            last->holder = now.holder;
            put_holder(&now, holder.tid, thread_state, out);
            return;
        }
    }
}
