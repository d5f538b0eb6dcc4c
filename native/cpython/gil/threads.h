/* Interpreters and their threads, and who holds the GIL. */
#pragma once

#include "cpython/source/cpython_source.h"

#define LC_INTERPRETERS_MAX 256u
#define LC_THREADS_MAX 65536u

/* Whether this is the address of an interpreter state of this process, now. */
bool lc_interp_known(const lc_cpython_source *source, uint64_t interp);

/* What is read of a thread state; false if it is none. */
typedef struct {
    uint64_t next;
    uint64_t interp;
    uint32_t tid;
} lc_thread_words;

bool lc_thread_words_read(const lc_cpython_source *source, uint64_t thread_state, lc_thread_words *words);

/* The same, of a copy of a thread state's beginning. */
lc_thread_words lc_thread_words_in(const lc_layout *layout, const uint8_t *header);

/* The threads of this interpreter. Working memory: none. */
uint32_t lc_threads_of(const lc_cpython_source *source, uint64_t interp, lc_thread_ref *out, uint32_t room);

/* lc_frame_source.thread_state, .threads and .gil. Watchdog's thread; no GIL, lock, allocation. */
uint64_t lc_thread_state(const lc_cpython_source *source, uint64_t tid);
uint32_t lc_threads(lc_cpython_source *source, uint64_t thread_state, lc_thread_ref *out, uint32_t room);
void lc_gil(lc_cpython_source *source, uint64_t thread_state, lc_gil_view *out);

/* lc_frame_source.thread_name. The same. */
lc_text lc_thread_name(lc_cpython_source *source, uint64_t thread_state, uint64_t tid);
