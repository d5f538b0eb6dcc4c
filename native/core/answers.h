/* How long a server's answers take: from the arrival of a connection's last bytes to the first byte that is sent back, and
 * how much of that the bytes lay there until the program took them. Pure bookkeeping; module/answer_hook.c tells it of the calls.
 *
 * A connection is a descriptor that was accepted. Every LC_ANSWERS_ONE_OF-th message that is received is timed: by count and
 * not by time, which would pass over those that come in a crowd, as they do when the loop was blocked. What comes
 * before the answer moves the arrival on: it is the last part that an answer waits for.
 *
 * All functions: any thread, any state of the GIL, signal-safe; no lock, no allocation, no Python. errno is kept.
 */
#ifndef LOOPCANARY_ANSWERS_H
#define LOOPCANARY_ANSWERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LC_ANSWERS_ONE_OF 8u
#define LC_ANSWERS_CONNECTIONS 4096u /* descriptors from here on are not timed */
#define LC_ANSWERS_ROWS 33u          /* row 0: threads without a loop, together */
#define LC_ANSWERS_BUCKETS 1024u     /* model/histogram.py: sixteen to each power of two */
#define LC_ANSWERS_NAME 120u

/* A message whose answer has been sent. Times of CLOCK_MONOTONIC. */
typedef struct {
    uint64_t arrived_ns;
    uint64_t taken_ns; /* the program received it */
    uint64_t sent_ns;
} lc_answer;

/* What one thread has answered. */
typedef struct {
    _Atomic uint64_t ident; /* of the thread that has the row; 0: free. Row 0 has none */
    _Atomic uint64_t events, lag_ns, waited_ns, worst_ns;
    _Atomic uint32_t counts[LC_ANSWERS_BUCKETS];
    atomic_flag names_worst; /* whoever has it writes `worst` */
    char worst[LC_ANSWERS_NAME]; /* scene of the longest, UTF-8, zero-ended */
    char thread[64];
} lc_answer_row;

extern lc_answer_row lc_answer_rows[LC_ANSWERS_ROWS];

/* Forgets what was timed; messages are, from here on. */
void lc_answers_begin(void);
/* No more are; what was timed can be read. */
void lc_answers_end(void);

/* The descriptor is an accepted connection from now on, or (false) is something else. */
void lc_answers_note_connection(int fd, bool accepted);
/* Whether the descriptor is an accepted connection; the one thing that is asked of every call. */
static inline bool lc_answers_knows(int fd);

/* So many bytes were received. */
void lc_answers_received(int fd, const void *data, ssize_t bytes);
/* Some were sent: what is answered by that; false: nothing that is timed. */
bool lc_answers_sent(int fd, lc_answer *answer);

/* The row of the thread, claimed at the first call; NULL: there is none left. */
lc_answer_row *lc_answers_row(uint64_t ident, const char *thread);
/* Counts it. True: it is the longest of the row, whose name the caller may set. */
bool lc_answers_count(lc_answer_row *row, const lc_answer *answer);
void lc_answers_name_worst(lc_answer_row *row, const char *name);

/* How long ago the socket's last bytes arrived, by the kernel's own account (TCP_INFO, to the length of its tick); false: no
 * TCP. */
bool lc_last_arrival_ns(int fd, uint64_t *ago_ns);

/* Whether a message that begins so may be a request: text, as HTTP/1 and lines are. TLS records, frames of HTTP/2 and of web
 * sockets are not: what is sent next is no answer to them. */
static inline bool lc_answers_may_be_request(const void *data)
{
    const unsigned char first = *(const unsigned char *)data;
    return first > 0x20 && first < 0x7f;
}

extern _Atomic uint8_t lc_answer_roles[LC_ANSWERS_CONNECTIONS];

static inline bool lc_answers_knows(int fd)
{
    return (unsigned)fd < LC_ANSWERS_CONNECTIONS &&
           atomic_load_explicit(&lc_answer_roles[fd], memory_order_relaxed) != 0;
}

uint32_t lc_answers_bucket(uint64_t ns);

#endif
