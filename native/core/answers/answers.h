/* Request latency: from the arrival of a request's bytes to the first byte that is sent back, and how long of
 * that the bytes waited until the program took them. Pure bookkeeping; probes/answers/hook.c reports the
 * calls.
 *
 * Requests of HTTP/1 are timed: their first bytes differ from all else, clients never receive such bytes, and
 * the next byte back is the answer's. Other connections cost a look at four bytes and one word. Every
 * LC_ANSWERS_ONE_OF-th request is timed. By count: by time it would miss requests that come in a crowd, as
 * they do after the loop was blocked. Bytes that come before the answer move the arrival on: an answer waits
 * for the last part. Another request (pipelining) is no part of the one before.
 *
 * All functions: any thread, any state of the GIL, signal-safe; no lock, no allocation, no Python. errno is
 * kept.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define LC_ANSWERS_ONE_OF 16u
#define LC_ANSWERS_CONNECTIONS 4096u /* descriptors from here on are not timed */
#define LC_ANSWERS_ROWS 33u      /* row 0: threads without a loop, or without a row that is left, together */
#define LC_ANSWERS_BUCKETS 1024u /* model/figures.py: sixteen to each power of two */
#define LC_ANSWERS_NAME 120u

/* A request whose answer has been sent. Times of CLOCK_MONOTONIC. */
typedef struct {
    uint64_t arrived_ns;
    uint64_t taken_ns; /* the program received it */
    uint64_t sent_ns;
    uint32_t word; /* the first four bytes of the request: its method */
    int fd;
} lc_answer;

/* What one thread has answered. */
typedef struct {
    _Atomic uint64_t ident; /* of the thread that has the row; 0: free. Row 0 has none */
    _Atomic uint64_t events, lag_ns, waited_ns, worst_ns;
    _Atomic uint32_t counts[LC_ANSWERS_BUCKETS];
    atomic_flag names_worst;     /* the thread that has it writes `worst` */
    char worst[LC_ANSWERS_NAME]; /* scene or method of the longest, UTF-8, zero-ended */
    char thread[64];
} lc_answer_row;

extern lc_answer_row lc_answer_rows[LC_ANSWERS_ROWS];

/* Forgets earlier times, and times requests from here on. */
void lc_answers_begin(void);
/* Times no more requests; earlier times can still be read. */
void lc_answers_end(void);

/* For servers of which more is known than their calls (probes/answers/hook.c).
 * Of the request that was timed last, on the calling thread: 1 more than its connection; 0: it has been
 * asked for. */
extern _Thread_local int lc_answers_fresh __attribute__((tls_model("initial-exec")));
/* The handling of the connection's request begins: only here its waiting ends. */
void lc_answers_handled(int fd);
/* What the answer to the connection's request is called, which is about to be sent. Copied; lost where
 * many are under way. */
void lc_answers_name(int fd, const char *name);
/* What it was called, copied to `name`. */
bool lc_answers_named(const lc_answer *answer, char *name, size_t room);

static inline void lc_answers_received(int fd, const void *data, ssize_t bytes);
/* Whether a request of the connection is timed, and not answered yet. */
static inline bool lc_answers_awaited(int fd);
/* Some bytes were sent, at that time: what is answered by them; false: nothing that is timed. */
bool lc_answers_sent(int fd, uint64_t sent_ns, lc_answer *answer);

/* The row of the thread, claimed at the first call; row 0 where none is left. */
lc_answer_row *lc_answers_row(uint64_t ident, const char *thread);
/* Counts it. True: it is the longest of the row, whose name the caller may set. */
bool lc_answers_count(lc_answer_row *row, const lc_answer *answer);
void lc_answers_name_worst(lc_answer_row *row, const char *name);
/* The request's method, as scenes have it. */
const char *lc_answers_method(const lc_answer *answer);

/* model/figures.py, bucket_of. */
uint32_t lc_answers_bucket(uint64_t ns);

/* ---- what is asked of every call --------------------------------------------------------- */

/* Its arrival and the socket's cookie count while taken_ns is not 0. */
typedef struct {
    _Atomic uint64_t taken_ns;
    _Atomic uint64_t arrived_ns;
    _Atomic uint64_t cookie; /* the socket's own number: descriptors are used again */
    _Atomic uint32_t word;
} lc_answer_request;

extern lc_answer_request lc_answer_requests[LC_ANSWERS_CONNECTIONS];

/* Slow paths. */
void lc_answers_begun(int fd, uint32_t word);
void lc_answers_more(int fd, uint32_t word);

/* Little-endian hosts only. */
#define LC_ANSWERS_WORD(a, b, c, d)                                                                          \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

static inline bool lc_answers_is_method(uint32_t word)
{
    switch (word) {
    case LC_ANSWERS_WORD('G', 'E', 'T', ' '):
    case LC_ANSWERS_WORD('H', 'E', 'A', 'D'):
    case LC_ANSWERS_WORD('P', 'O', 'S', 'T'):
    case LC_ANSWERS_WORD('P', 'U', 'T', ' '):
    case LC_ANSWERS_WORD('P', 'A', 'T', 'C'):
    case LC_ANSWERS_WORD('D', 'E', 'L', 'E'):
    case LC_ANSWERS_WORD('O', 'P', 'T', 'I'):
        return true;
    default:
        return false;
    }
}

static inline bool lc_answers_awaited(int fd)
{
    return (unsigned)fd < LC_ANSWERS_CONNECTIONS &&
           atomic_load_explicit(&lc_answer_requests[fd].taken_ns, memory_order_relaxed) != 0;
}

static inline void lc_answers_received(int fd, const void *data, ssize_t bytes)
{
    uint32_t word = 0;
    if (bytes >= (ssize_t)sizeof word) {
        memcpy(&word, data, sizeof word);
    }
    if (__builtin_expect(bytes > 0 && lc_answers_awaited(fd), 0)) {
        lc_answers_more(fd, word);
    } else if (lc_answers_is_method(word)) {
        lc_answers_begun(fd, word);
    }
}
