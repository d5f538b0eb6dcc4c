/* How long a server's answers take: from the arrival of a request's bytes to the first byte that is sent back, and how much of
 * that they lay there until the program took them. Pure bookkeeping; module/answer_hook.c tells it of the calls.
 *
 * What is timed are requests of HTTP/1: the one protocol whose requests can be told from all else by their first bytes, which
 * clients never receive, and whose next byte back is the answer's. Nothing needs to be known of a connection before
 * that, nor of any that carries something else: they pay for a look at four bytes and for one word.
 * Every LC_ANSWERS_ONE_OF-th request is timed: by count and not by time, which would pass over those that come in a crowd, as
 * they do when the loop was blocked. Bytes that come before the answer move the arrival on: it is the last part that an
 * answer waits for. Another request (pipelining) is no part of the one before.
 *
 * All functions: any thread, any state of the GIL, signal-safe; no lock, no allocation, no Python. errno is kept.
 */
#ifndef LOOPCANARY_ANSWERS_H
#define LOOPCANARY_ANSWERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "lane_look.h"

#define LC_ANSWERS_ONE_OF 16u
#define LC_ANSWERS_CONNECTIONS 4096u /* descriptors from here on are not timed */
#define LC_ANSWERS_ROWS 33u          /* row 0: threads without a loop, or without a row that is left, together */
#define LC_ANSWERS_BUCKETS 1024u     /* model/histogram.py: sixteen to each power of two */
#define LC_ANSWERS_NAME 120u

/* A request whose answer has been sent. Times of CLOCK_MONOTONIC. */
typedef struct {
    uint64_t arrived_ns;
    uint64_t taken_ns; /* the program received it */
    uint64_t sent_ns;
    uint32_t word; /* the first four bytes of the request: its method */
} lc_answer;

/* What one thread has answered. */
typedef struct {
    _Atomic uint64_t ident; /* of the thread that has the row; 0: free. Row 0 has none */
    _Atomic uint64_t events, lag_ns, waited_ns, worst_ns;
    _Atomic uint32_t counts[LC_ANSWERS_BUCKETS];
    atomic_flag names_worst;     /* whoever has it writes `worst` */
    char worst[LC_ANSWERS_NAME]; /* scene or method of the longest, UTF-8, zero-ended */
    char thread[64];
} lc_answer_row;

extern lc_answer_row lc_answer_rows[LC_ANSWERS_ROWS];

/* Tells the calling thread's look at its sockets as of `now_ns`; false: the thread has no loop. */
typedef bool (*lc_answers_looker)(uint64_t now_ns, lc_look *out);

/* Forgets what was timed; requests are, from here on. */
void lc_answers_begin(void);
/* NULL, as before the first call: no thread has a loop. */
void lc_answers_set_looker(lc_answers_looker looker);
/* No more are; what was timed can be read. */
void lc_answers_end(void);

/* Somebody else times this connection's requests. */
void lc_answers_leave(int fd);

/* A connection was accepted. Only of Unix sockets something is noted: the kernel knows when TCP's bytes came. */
void lc_answers_accepted(int listening, int fd);

/* So many bytes were received. */
static inline void lc_answers_received(int fd, const void *data, ssize_t bytes);
/* Whether a request of the connection is timed, and not answered yet. */
static inline bool lc_answers_awaited(int fd);
/* Some bytes were sent, at that time: what is answered by them; false: nothing that is timed. */
bool lc_answers_sent(int fd, uint64_t sent_ns, lc_answer *answer);

/* The same of what TLS hides: bytes that a session (an address) has deciphered, or is about to encipher. `fd_of` gives the
 * session's own socket; negative: it has none, as those of loops, which receive for it just before, on the same
 * thread. */
typedef int (*lc_answers_fd_of)(const void *session);
static inline void lc_answers_deciphered(const void *session, lc_answers_fd_of fd_of, const void *data, size_t bytes);
static inline bool lc_answers_awaited_by(const void *session);
bool lc_answers_enciphering(const void *session, uint64_t sent_ns, lc_answer *answer);

/* The row of the thread, claimed at the first call; row 0 where none is left. */
lc_answer_row *lc_answers_row(uint64_t ident, const char *thread);
/* Counts it. True: it is the longest of the row, whose name the caller may set. */
bool lc_answers_count(lc_answer_row *row, const lc_answer *answer);
void lc_answers_name_worst(lc_answer_row *row, const char *name);
/* The request's method, as it stands in scenes. */
const char *lc_answers_method(const lc_answer *answer);

/* model/histogram.py, bucket_of. */
uint32_t lc_answers_bucket(uint64_t ns);

/* ---- what is asked of every call --------------------------------------------------------- */

/* Its arrival and the socket's cookie count while taken_ns is not 0. */
typedef struct {
    _Atomic uint64_t taken_ns;
    _Atomic uint64_t arrived_ns;
    _Atomic uint64_t cookie; /* the socket's own number: descriptors are given out anew */
    _Atomic uint64_t elsewhere;
    _Atomic uint32_t word;
    _Atomic uint64_t session; /* the request was deciphered by it; 0: it came in clear */
    /* Of a Unix socket, noted when it was accepted, until its first request; of one that listens, at its last connection. */
    _Atomic uint64_t came_ns;    /* when it was connected, likely; of a listening one: after that the next is; 0: unknown */
    _Atomic uint64_t until_ns;   /* of a listening one: before that the next is, which waits already */
    _Atomic uint64_t came_thread; /* the look is of that thread's lane */
    _Atomic uint64_t came_cookie;
    _Atomic uint64_t came_rested;
} lc_answer_request;

extern lc_answer_request lc_answer_requests[LC_ANSWERS_CONNECTIONS];

/* Sessions of which a request is timed, by their addresses; of two that fall together, the later one. */
#define LC_ANSWERS_SESSION_BITS 10u
#define LC_ANSWERS_SESSIONS (1u << LC_ANSWERS_SESSION_BITS)
typedef struct {
    _Atomic uint64_t session;
    _Atomic int fd;
} lc_answer_session;

extern lc_answer_session lc_answer_sessions[LC_ANSWERS_SESSIONS];

/* Where the calling thread has last received a TLS record; -1: nowhere. */
extern _Thread_local int lc_answers_record_fd __attribute__((tls_model("initial-exec")));

/* Slow paths. */
void lc_answers_begun(int fd, uint32_t word);
void lc_answers_more(int fd, uint32_t word);
void lc_answers_begun_by(const void *session, int fd, uint32_t word);
void lc_answers_more_by(const void *session, int fd, uint32_t word);

#define LC_ANSWERS_WORD(a, b, c, d)                                                                               \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24) /* little-endian hosts only */

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

/* The head of a TLS record: its type (change_cipher_spec to application_data) and version 3. */
static inline bool lc_answers_is_record(uint32_t word) { return (word & 0xffffu) - 0x0314u <= 3u; }

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
    } else if (lc_answers_is_record(word)) {
        lc_answers_record_fd = fd;
    }
}

static inline lc_answer_session *lc_answers_session(const void *session)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)session * UINT64_C(0x9e3779b97f4a7c15);
    return &lc_answer_sessions[mixed >> (64u - LC_ANSWERS_SESSION_BITS)];
}

static inline bool lc_answers_awaited_by(const void *session)
{
    return atomic_load_explicit(&lc_answers_session(session)->session, memory_order_relaxed) ==
           (uint64_t)(uintptr_t)session;
}

static inline void lc_answers_deciphered(const void *session, lc_answers_fd_of fd_of, const void *data, size_t bytes)
{
    uint32_t word = 0;
    if (bytes >= sizeof word) {
        memcpy(&word, data, sizeof word);
    }
    if (__builtin_expect(lc_answers_awaited_by(session), 0)) {
        lc_answers_more_by(session, fd_of(session), word);
    } else if (lc_answers_is_method(word)) {
        lc_answers_begun_by(session, fd_of(session), word);
    }
}

#endif
